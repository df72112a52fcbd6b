import {
  type EvictionState,
  emptyEvictionState,
  outcomeResults,
  STATE_VERSION,
} from "@nodekeeper/api/decide";
import { StateDamaged } from "@nodekeeper/api/errors";
import { type Logger, NodekeeperError } from "@nodekeeper/core/lib";

type Check = (value: unknown) => boolean;
/** The checks of an item's fields. */
type Fields<T> = { readonly [Name in keyof T]-?: Check };
type Lists = Omit<EvictionState, "version" | "at" | "boot">;
type ItemOf<Name extends keyof Lists> = Lists[Name][number];

const text: Check = (value) => typeof value === "string";
// The range of Date, with a margin.
const LATEST = 8e15;
const time: Check = (value) => typeof value === "number" && Math.abs(value) <= LATEST;
const oneOf =
  (...values: readonly string[]): Check =>
  (value) =>
    typeof value === "string" && values.includes(value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const orAbsent =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const flag: Check = (value) => typeof value === "boolean";
const texts: Check = (value) => Array.isArray(value) && value.every(text);
const object: Check = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const pressures: Check = (value) =>
  Array.isArray(value) &&
  value.every((one) => problemOf(one, { plugin: text, scope: text, source: askSource }) === undefined);
const askSource = oneOf("threshold", "evictPods");
const pod = { uid: text, namespace: text, name: text };
const eviction: Fields<ItemOf<"pending">> = {
  ...pod,
  plugin: text,
  scope: text,
  kind: oneOf("soft", "forced"),
  source: askSource,
  others: orAbsent(pressures),
  reason: text,
  gracePeriodSeconds: orNull(time),
  since: time,
  sendingAt: orNull(time),
  acceptedAt: orNull(time),
  deadline: orNull(time),
  stopsContainers: orAbsent(flag),
  isOverdue: orAbsent(flag),
};

// Add every new field of the state here.
const required: { readonly [Name in keyof Lists]: Fields<ItemOf<Name>> } = {
  thresholds: {
    plugin: text,
    scope: text,
    metType: oneOf("soft", "hard"),
    since: time,
    reportedAt: time,
    lastSeen: time,
  },
  conditions: {
    plugin: text,
    target: oneOf("node", "customNodeResource"),
    name: text,
    effects: texts,
    since: time,
    lastSeen: time,
    cause: orAbsent(text),
  },
  queue: { ...pod, since: time },
  pending: eviction,
  interrupted: eviction,
  recent: {
    uid: text,
    namespace: text,
    ownerUid: orNull(text),
    plugin: text,
    scope: text,
    others: orAbsent(pressures),
    at: time,
    releasedAt: orNull(time),
  },
  paused: { uid: text, until: time, reason: text, budget: orNull(object) },
  unrecorded: {
    uid: text,
    namespace: orAbsent(text),
    name: orAbsent(text),
    result: oneOf(...outcomeResults),
    sent: orAbsent(flag),
    acceptedAt: orAbsent(time),
    endedAt: orAbsent(time),
    message: text,
    budget: orAbsent(orNull(object)),
  },
  unusable: { plugin: text, scope: orAbsent(text), rounds: time },
  unserved: { plugin: text, since: time },
};

/**
 * Reads a stored state of any version. Throws `corrupt` if it is not a JSON object. An item with a missing or invalid
 * field is skipped and logged; the rest is kept.
 */
export function readStoredState(stored: string, log: Logger): EvictionState {
  const state = parsed(stored);
  const version = typeof state.version === "number" ? state.version : 0;
  const result: EvictionState = {
    ...emptyEvictionState(),
    at: time(state.at) ? (state.at as number) : null,
    boot: bootOf(state.boot),
  };
  const dropped: { list: string; problem: string; item: string }[] = [];
  const lists = result as unknown as Record<string, unknown[]>;
  for (const [list, fields] of Object.entries(required)) {
    const items = state[list] ?? [];
    if (!Array.isArray(items)) {
      dropped.push({ list, problem: "it is not a list", item: shown(items) });
      continue;
    }
    for (const item of items.map((one) => upgraded(version, list, one))) {
      const problem = problemOf(item, fields);
      if (problem === undefined) lists[list]!.push(item);
      else dropped.push({ list, problem, item: shown(item) });
    }
  }
  if (dropped.length > 0) {
    log.error(
      {
        errorId: StateDamaged.id,
        version,
        expectedVersion: STATE_VERSION,
        count: dropped.length,
        dropped: dropped.slice(0, MOST_SHOWN),
      },
      "parts of the stored eviction state are malformed and skipped",
    );
  }
  return result;
}

const MOST_SHOWN = 10;
const LONGEST_SHOWN = 200;

function parsed(stored: string): Record<string, unknown> {
  let state: unknown;
  try {
    state = JSON.parse(stored);
  } catch (error) {
    throw new NodekeeperError("corrupt", "the stored eviction state is not JSON", { cause: error });
  }
  if (object(state)) return state as Record<string, unknown>;
  throw new NodekeeperError("corrupt", "the stored eviction state is not an object");
}

function bootOf(value: unknown): EvictionState["boot"] {
  const boot = object(value) ? (value as Partial<NonNullable<EvictionState["boot"]>>) : {};
  return typeof boot.id === "string" && time(boot.uptimeMs)
    ? { id: boot.id, uptimeMs: boot.uptimeMs! }
    : null;
}

function upgraded(version: number, list: string, item: unknown): unknown {
  const first = version === 0 ? fromVersion0(list, item) : item;
  return version < 2 ? fromVersion1(list, first) : first;
}

// Version 0 did not store acceptances: the first round decides its pending evictions again.
function fromVersion0(list: string, item: unknown): unknown {
  if (!object(item)) return item;
  if (list === "pending") return { ...(item as object), acceptedAt: null, deadline: null };
  if (list === "thresholds")
    return { reportedAt: (item as { lastSeen?: unknown }).lastSeen, ...(item as object) };
  return list === "paused" ? { budget: null, ...(item as object) } : item;
}

// Version 1 did not store whether a request was about to be sent. It may have been sent since the decision.
function fromVersion1(list: string, item: unknown): unknown {
  if (!object(item) || (list !== "pending" && list !== "interrupted")) return item;
  const { since, acceptedAt } = item as Partial<ItemOf<"pending">>;
  return { sendingAt: acceptedAt ?? since, ...(item as object) };
}

function problemOf(item: unknown, fields: Readonly<Record<string, Check>>): string | undefined {
  if (!object(item)) return "it is not an object";
  const wrong = Object.entries(fields).find(
    ([name, check]) => !check((item as Record<string, unknown>)[name]),
  );
  return wrong && `${wrong[0]} is missing or wrong`;
}

function shown(item: unknown): string {
  return JSON.stringify(item).slice(0, LONGEST_SHOWN);
}

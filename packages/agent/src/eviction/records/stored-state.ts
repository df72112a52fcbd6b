import { type EvictionState, emptyEvictionState, STATE_VERSION } from "@nodekeeper/api/decide";
import { StateDamaged } from "@nodekeeper/api/errors";
import { type JsonSchema, matches, mismatchOf, state as stateSchema } from "@nodekeeper/api/schemas";
import { isRecord } from "@nodekeeper/core/kube";
import { type Logger, NodekeeperError } from "@nodekeeper/core/lib";

const members = stateSchema.json.properties as Readonly<Record<string, JsonSchema>>;
const lists = Object.entries(members).filter(([, { type }]) => type === "array");

/**
 * Reads a stored state. Throws `corrupt` if it is not a JSON object. An item with a missing or invalid
 * field is skipped and logged; the rest is kept.
 */
export function readStoredState(stored: string, log: Logger): EvictionState {
  const state = parsed(stored);
  const version = typeof state.version === "number" ? state.version : 0;
  const result: Record<string, unknown> & { version: number } = { ...emptyEvictionState() };
  for (const name of ["at", "boot"]) if (matches(members[name]!, state[name])) result[name] = state[name];
  const dropped: { list: string; problem: string; item: string }[] = [];
  for (const [list, { items: schema }] of lists) {
    const items = state[list] ?? [];
    if (!Array.isArray(items)) {
      dropped.push({ list, problem: "it is not a list", item: shown(items) });
      continue;
    }
    const kept: unknown[] = [];
    for (const item of items) {
      const problem = mismatchOf(schema as JsonSchema, item);
      if (problem === undefined) kept.push(item);
      else dropped.push({ list, problem, item: shown(item) });
    }
    result[list] = kept;
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
  return result as unknown as EvictionState;
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
  if (isRecord(state)) return state;
  throw new NodekeeperError("corrupt", "the stored eviction state is not an object");
}

function shown(item: unknown): string {
  return JSON.stringify(item).slice(0, LONGEST_SHOWN);
}

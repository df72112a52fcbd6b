import type { ScopedSignal, Timer } from "@nodekeeper/core/lib";
import {
  type CallError,
  ExchangeLog,
  joinedErrors,
  type PluginExchanges,
  type PluginRegistration,
  shownJson,
} from "../plugins/index.ts";
import type { CollectMethod } from "./collect.ts";
import { noContent, type PluginContent } from "./content.ts";
import { type ReportMessage, sizeOf } from "./report-message.ts";

/** Status of a reporter plugin, as shown by `nodekeeper plugins list`. */
export interface ReporterStatus {
  name: string;
  inTree: boolean;
  state: "running" | "stopped";
  /** Since when its messages are counted, wall milliseconds: the same over registrations until its grace period ends. */
  countedSince: number;
  endpoint: string | undefined;
  /** Wall clock time, milliseconds since the epoch. */
  updatedAt: number | undefined;
  /** Wall milliseconds of the last message, changed or not; undefined before the first since the agent's start. */
  contactAt: number | undefined;
  stoppedAt: number | undefined;
  /** Why its registration ended; undefined while it is registered. */
  lostReason: string | undefined;
  contentBytes: number;
  problems: readonly string[];
  /** Of the last calls; undefined where none failed. */
  lastError: CallError | undefined;
}

/** State of one plugin, kept across its registrations. */
export interface Endpoint {
  readonly name: string;
  readonly inTree: boolean;
  /** Wall milliseconds: when this agent process saw it first. */
  readonly countedSince: number;
  registration: PluginRegistration | undefined;
  scope: ScopedSignal | undefined;
  /** The last message. */
  message: ReportMessage | undefined;
  /** The message that `content` was read from; not the last one while that is still to be read. */
  read: ReportMessage | undefined;
  content: PluginContent;
  updatedAt: number | undefined;
  stoppedAt: number | undefined;
  /** Why its registration ended; set together with `stoppedAt`. */
  lostReason: string | undefined;
  grace: Timer | undefined;
  /** Since when it ranks as lost, monotonic milliseconds; read while `stoppedAt` is set. */
  lostFrom: number;
  /** Start of its grace period, monotonic milliseconds. */
  graceFrom: number;
  /** Its grace period ends at this time at the earliest, monotonic milliseconds. */
  graceNotBefore: number;
  /** Monotonic milliseconds. */
  lastSuccess: number | undefined;
  /** Monotonic time of the last message, changed or not; undefined before the first since the agent's start. */
  receivedAt: number | undefined;
  /** Wall milliseconds of the same. */
  contactAt: number | undefined;
  /** Error of the last call, by method; no entry for a method whose last call succeeded. */
  readonly errors: Map<CollectMethod, CallError>;
  readonly exchanges: ExchangeLog;
}

/** Initial state of a plugin that is seen first at `now`, wall milliseconds. */
export function newEndpoint(name: string, inTree: boolean, now: number): Endpoint {
  return {
    name,
    inTree,
    countedSince: now,
    registration: undefined,
    scope: undefined,
    message: undefined,
    read: undefined,
    content: noContent,
    updatedAt: undefined,
    stoppedAt: undefined,
    lostReason: undefined,
    grace: undefined,
    lostFrom: 0,
    graceFrom: 0,
    graceNotBefore: 0,
    lastSuccess: undefined,
    receivedAt: undefined,
    contactAt: undefined,
    errors: new Map(),
    exchanges: new ExchangeLog(),
  };
}

/** The plugin does not implement its stream, as of `now`, wall milliseconds. */
export function noteNoStream({ errors, exchanges }: Endpoint, now: number): void {
  errors.delete("ListAndWatchReportContent");
  exchanges.note({ call: "ListAndWatchReportContent", at: now, isUnimplemented: true });
}

export function endpointStatus(endpoint: Endpoint): ReporterStatus {
  const { name, inTree, registration, stoppedAt, lostReason, updatedAt, contactAt, message, content } =
    endpoint;
  return {
    name,
    inTree,
    countedSince: endpoint.countedSince,
    state: stoppedAt === undefined ? "running" : "stopped",
    endpoint: registration?.endpoint,
    updatedAt,
    contactAt,
    stoppedAt,
    lostReason,
    contentBytes: message ? sizeOf(message) : 0,
    problems: content.problems.map((problem) => problem.message),
    lastError: joinedErrors(endpoint.errors.values()),
  };
}

/**
 * The last exchanges with a plugin. The newest one that did not fail has the plugin's fields as they were read last: the
 * message itself is not decoded again.
 */
export function exchangesOf({ exchanges, content }: Endpoint): PluginExchanges {
  const { calls, durations } = exchanges.show();
  const newest = calls.findIndex(({ error, isUnimplemented }) => error === undefined && !isUnimplemented);
  const fields = content.fields.map(({ object, part, name, value }) => ({ object, part, name, value }));
  return {
    calls: calls.map((call, at) => (at === newest ? { ...call, answer: shownJson(fields) } : call)),
    durations,
  };
}

/** The objects (`kindKey`) that the plugins' contents contain fields of. */
export function objectsOf(endpoints: Iterable<Endpoint>): Set<string> {
  const objects = new Set<string>();
  for (const { content } of endpoints) for (const { object } of content.fields) objects.add(object);
  return objects;
}

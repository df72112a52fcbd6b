import type { BootTime, ScopedSignal, Timer, Writable } from "@nodekeeper/core/lib";
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
  /**
   * Wall clock milliseconds since which its messages are counted. Kept across registrations until its grace period
   * ends.
   */
  countedSince: number;
  endpoint: string | undefined;
  /** Wall clock time, milliseconds since the epoch. */
  updatedAt: number | undefined;
  /**
   * Wall clock milliseconds of the last message, changed or not. Undefined before the first since the agent's start.
   */
  contactAt: number | undefined;
  stoppedAt: number | undefined;
  /** Why its registration ended. Undefined while it is registered. */
  lostReason: string | undefined;
  contentBytes: number;
  problems: readonly string[];
  /** Errors of the last calls. Undefined if none failed. */
  lastError: CallError | undefined;
}

/** State of one plugin, kept across its registrations. Only `ReporterManager` changes it. */
export interface Endpoint {
  readonly name: string;
  readonly inTree: boolean;
  /** Wall clock milliseconds at which this agent process first saw the plugin. */
  readonly countedSince: number;
  readonly registration?: PluginRegistration;
  readonly scope?: ScopedSignal;
  /** The last message. */
  readonly message?: ReportMessage;
  /** The message that `content` was parsed from. Differs from `message` until that is parsed. */
  readonly read?: ReportMessage;
  readonly content: PluginContent;
  readonly updatedAt?: number;
  readonly stoppedAt?: number;
  /** Boot ID and uptime at that time. Undefined while it is registered, or if unknown. */
  readonly stoppedIn?: BootTime;
  /** Why its registration ended. Set together with `stoppedAt`. */
  readonly lostReason?: string;
  readonly grace?: Timer;
  /** Monotonic milliseconds from which it ranks as lost. Valid while `stoppedAt` is set. */
  readonly lostFrom: number;
  /** Start of its grace period, in monotonic milliseconds. */
  readonly graceFrom: number;
  /** Earliest end of its grace period, in monotonic milliseconds. */
  readonly graceNotBefore: number;
  /** Monotonic milliseconds of the last successful call or registration. */
  readonly lastSuccess?: number;
  /** Monotonic milliseconds of the last message, changed or not. Undefined before the first since the agent's start. */
  readonly receivedAt?: number;
  /** The same in wall clock milliseconds. */
  readonly contactAt?: number;
  /** Error of the last call by method. No entry if the method's last call succeeded. */
  readonly errors: Map<CollectMethod, CallError>;
  readonly exchanges: ExchangeLog;
}

/** Returns the initial state of a plugin. @param now wall clock milliseconds */
export function newEndpoint(name: string, inTree: boolean, now: number): Writable<Endpoint> {
  return {
    name,
    inTree,
    countedSince: now,
    content: noContent,
    lostFrom: 0,
    graceFrom: 0,
    graceNotBefore: 0,
    errors: new Map(),
    exchanges: new ExchangeLog(),
  };
}

/** Records that the plugin does not implement the stream. @param now wall clock milliseconds */
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
 * Returns the last exchanges with a plugin. The newest successful one includes the fields that were last parsed;
 * messages are not decoded again.
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

/** Returns the objects (`kindKey`) for which the plugins' contents have fields. */
export function objectsOf(endpoints: Iterable<Endpoint>): Set<string> {
  const objects = new Set<string>();
  for (const { content } of endpoints) for (const { object } of content.fields) objects.add(object);
  return objects;
}

import type { ScopedSignal, Timer } from "@nodekeeper/core/lib";
import type { PluginRegistration } from "../plugins/index.ts";
import type { CollectMethod } from "./collect.ts";
import { noContent, type PluginContent } from "./content.ts";
import { type ReportMessage, sizeOf } from "./report-message.ts";

/** A reporter plugin as `nodekeeper plugins list` shows it. */
export interface ReporterStatus {
  name: string;
  inTree: boolean;
  state: "running" | "stopped";
  endpoint: string | undefined;
  /** Wall milliseconds. */
  updatedAt: number | undefined;
  stoppedAt: number | undefined;
  /** Why its registration ended; undefined while it has one. */
  lostReason: string | undefined;
  contentBytes: number;
  problems: readonly string[];
  lastError: string | undefined;
}

/** What is kept of one plugin, over its registrations. */
export interface Endpoint {
  readonly name: string;
  readonly inTree: boolean;
  registration: PluginRegistration | undefined;
  scope: ScopedSignal | undefined;
  message: ReportMessage | undefined;
  content: PluginContent;
  updatedAt: number | undefined;
  stoppedAt: number | undefined;
  /** Why its registration ended, for those with `stoppedAt`. */
  lostReason: string | undefined;
  grace: Timer | undefined;
  /** Monotonic: when its grace began. */
  graceFrom: number;
  /** Monotonic. */
  lastSuccess: number | undefined;
  /** Monotonic: of the last message, changed or not; undefined where none came since the agent's start. */
  receivedAt: number | undefined;
  /** Why the last call failed, by method; none where it works. */
  readonly errors: Map<CollectMethod, string>;
}

/** A plugin of which nothing is known yet. */
export function newEndpoint(name: string, inTree: boolean): Endpoint {
  return {
    name,
    inTree,
    registration: undefined,
    scope: undefined,
    message: undefined,
    content: noContent,
    updatedAt: undefined,
    stoppedAt: undefined,
    lostReason: undefined,
    grace: undefined,
    graceFrom: 0,
    lastSuccess: undefined,
    receivedAt: undefined,
    errors: new Map(),
  };
}

/** What is wrong with the calls to a plugin, in one line; undefined where nothing is. */
export function errorOf({ errors }: Endpoint): string | undefined {
  return errors.size > 0 ? [...errors.values()].sort().join("; ") : undefined;
}

export function endpointStatus(endpoint: Endpoint): ReporterStatus {
  const { name, inTree, registration, stoppedAt, lostReason, updatedAt, message, content } = endpoint;
  return {
    name,
    inTree,
    state: stoppedAt === undefined ? "running" : "stopped",
    endpoint: registration?.endpoint,
    updatedAt,
    stoppedAt,
    lostReason,
    contentBytes: message ? sizeOf(message) : 0,
    problems: content.problems.map((problem) => problem.message),
    lastError: errorOf(endpoint),
  };
}

/** The objects (`kindKey`) that the contents are about. */
export function objectsOf(endpoints: Iterable<Endpoint>): Set<string> {
  const objects = new Set<string>();
  for (const { content } of endpoints) for (const { object } of content.fields) objects.add(object);
  return objects;
}

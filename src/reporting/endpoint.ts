import type { ScopedSignal, Timer } from "../lib/index.ts";
import type { PluginRegistration } from "../plugins/index.ts";
import { noContent, type PluginContent } from "./content.ts";

/** A reporter plugin as `nodekeeper plugins list` shows it. */
export interface ReporterStatus {
  name: string;
  inTree: boolean;
  state: "running" | "stopped";
  endpoint: string | undefined;
  /** Wall milliseconds. */
  updatedAt: number | undefined;
  stoppedAt: number | undefined;
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
  message: Uint8Array | undefined;
  content: PluginContent;
  updatedAt: number | undefined;
  stoppedAt: number | undefined;
  grace: Timer | undefined;
  /** Monotonic: when its grace began. */
  graceFrom: number;
  /** Monotonic. */
  lastSuccess: number | undefined;
  lastError: string | undefined;
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
    grace: undefined,
    graceFrom: 0,
    lastSuccess: undefined,
    lastError: undefined,
  };
}

export function endpointStatus(endpoint: Endpoint): ReporterStatus {
  const { name, inTree, registration, stoppedAt, updatedAt, message, content, lastError } = endpoint;
  return {
    name,
    inTree,
    state: stoppedAt === undefined ? "running" : "stopped",
    endpoint: registration?.endpoint,
    updatedAt,
    stoppedAt,
    contentBytes: message?.length ?? 0,
    problems: content.problems.map((problem) => problem.message),
    lastError,
  };
}

/** The objects (`kindKey`) that the contents are about. */
export function objectsOf(endpoints: Iterable<Endpoint>): Set<string> {
  const objects = new Set<string>();
  for (const { content } of endpoints) for (const { object } of content.fields) objects.add(object);
  return objects;
}

import { childScope, type ScopedSignal } from "@nodekeeper/core/lib";
import type { PluginRegistration } from "../../plugins/index.ts";
import type { PluginMethod } from "../round-metrics.ts";
import type { EvictionPluginCalls } from "./source.ts";

/** A plugin that rounds ask, for the time of one registration. */
export interface ServedPlugin {
  readonly name: string;
  /** Undefined for an in-tree plugin. */
  readonly registration: PluginRegistration | undefined;
  readonly calls: EvictionPluginCalls;
  /** Aborts when the registration ends. */
  readonly scope: ScopedSignal;
  /** Why the last call failed, by method; none where it works. */
  readonly errors: Map<PluginMethod, string>;
  /** What is refused of its conditions, as of the last round. */
  problems: readonly string[];
  /** Methods that it does not implement, as of its last answers. */
  readonly unimplemented: Set<PluginMethod>;
  /** Methods that let a deadline pass, and since when, monotonic. */
  readonly suspects: Map<PluginMethod, number>;
  /** Wall milliseconds. */
  answeredAt: number | undefined;
  /** The thresholds that were crossed by the last sample. */
  crossed: readonly string[];
}

/** An eviction plugin as `nodekeeper plugins list` shows it. */
export interface EvictionPluginStatus {
  name: string;
  inTree: boolean;
  endpoint: string | undefined;
  /** When it last answered any call, wall milliseconds. */
  answeredAt: number | undefined;
  lastError: string | undefined;
  /** What is refused of its conditions, each with the reason. */
  problems: readonly string[];
}

export function newServedPlugin(
  name: string,
  registration: PluginRegistration | undefined,
  calls: EvictionPluginCalls,
): ServedPlugin {
  return {
    name,
    registration,
    calls,
    scope: childScope(),
    errors: new Map(),
    problems: [],
    unimplemented: new Set(),
    suspects: new Map(),
    answeredAt: undefined,
    crossed: [],
  };
}

export function statusOf(plugin: ServedPlugin): EvictionPluginStatus {
  const { name, registration, answeredAt } = plugin;
  return {
    name,
    inTree: registration === undefined,
    endpoint: registration?.endpoint,
    answeredAt,
    lastError: errorOf(plugin),
    problems: plugin.problems,
  };
}

// Each call is optional, but a plugin that lacks both of these can't report anything.
function errorOf({ errors, unimplemented }: ServedPlugin): string | undefined {
  if (errors.size > 0) return [...errors.values()].sort().join("; ");
  const isMute = unimplemented.has("ThresholdMet") && unimplemented.has("GetEvictPods");
  return isMute ? "it implements neither ThresholdMet nor GetEvictPods" : undefined;
}

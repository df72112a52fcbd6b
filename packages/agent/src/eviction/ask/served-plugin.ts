import { EvictionPluginWithoutCalls } from "@nodekeeper/api/errors";
import { childScope, type ScopedSignal } from "@nodekeeper/core/lib";
import { type CallError, ExchangeLog, joinedErrors, type PluginRegistration } from "../../plugins/index.ts";
import type { PluginMethod } from "../metrics.ts";
import type { CallDeadline } from "./call-deadline.ts";
import type { EvictionPluginCalls } from "./source.ts";

/** A plugin that rounds call, for the duration of one registration. */
export interface ServedPlugin {
  readonly name: string;
  /** Undefined for an in-tree plugin. */
  readonly registration: PluginRegistration | undefined;
  readonly calls: EvictionPluginCalls;
  /** Aborts when the registration ends. */
  readonly scope: ScopedSignal;
  /** The error of the last call of each method; no entry if that call succeeded. */
  readonly errors: Map<PluginMethod, CallError>;
  /** Its conditions that the last round refused. */
  problems: readonly string[];
  /** Methods whose last call returned UNIMPLEMENTED. */
  readonly unimplemented: Set<PluginMethod>;
  readonly deadlines: Map<PluginMethod, CallDeadline>;
  /** Whether the registration ended because of a newer one with the same name. */
  replaced: boolean;
  /** Wall milliseconds of the last answer. */
  answeredAt: number | undefined;
  readonly exchanges: ExchangeLog;
  /** The thresholds that the last sample crossed. */
  crossed: readonly string[];
}

/** An eviction plugin in `nodekeeper plugins list`. */
export interface EvictionPluginStatus {
  name: string;
  inTree: boolean;
  /** Wall milliseconds of the last answer to any call. */
  answeredAt: number | undefined;
  /** The errors of the last calls; undefined if all succeeded. */
  lastError: CallError | undefined;
  /** Its refused conditions, each with the reason. */
  problems: readonly string[];
}

/**
 * Returns the initial state of a plugin for a new registration.
 * @param registration undefined for an in-tree plugin
 */
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
    deadlines: new Map(),
    replaced: false,
    answeredAt: undefined,
    exchanges: new ExchangeLog(),
    crossed: [],
  };
}

/** Returns the status of a plugin. A plugin with neither ThresholdMet nor GetEvictPods is reported with an error. */
export function statusOf(plugin: ServedPlugin): EvictionPluginStatus {
  const { name, registration, answeredAt } = plugin;
  return {
    name,
    inTree: registration === undefined,
    answeredAt,
    lastError: errorOf(plugin),
    problems: plugin.problems,
  };
}

// Every call is optional, but a plugin without both of these can't report anything.
function errorOf({ errors, unimplemented }: ServedPlugin): CallError | undefined {
  if (errors.size > 0) return joinedErrors(errors.values());
  if (!unimplemented.has("ThresholdMet") || !unimplemented.has("GetEvictPods")) return undefined;
  return {
    message: "the plugin implements neither ThresholdMet nor GetEvictPods",
    id: EvictionPluginWithoutCalls.id,
  };
}

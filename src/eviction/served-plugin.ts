import { childScope, type ScopedSignal } from "../lib/index.ts";
import type { PluginRegistration } from "../plugins/index.ts";
import type { PluginMethod } from "./round-metrics.ts";
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
  /** Methods that let a deadline pass, and since when, monotonic. */
  readonly suspects: Map<PluginMethod, number>;
  /** Wall milliseconds. */
  answeredAt: number | undefined;
}

/** An eviction plugin as `nodekeeper plugins list` shows it. */
export interface EvictionPluginStatus {
  name: string;
  inTree: boolean;
  endpoint: string | undefined;
  /** When it last answered any call, wall milliseconds. */
  answeredAt: number | undefined;
  lastError: string | undefined;
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
    suspects: new Map(),
    answeredAt: undefined,
  };
}

export function statusOf({ name, registration, answeredAt, errors }: ServedPlugin): EvictionPluginStatus {
  return {
    name,
    inTree: registration === undefined,
    endpoint: registration?.endpoint,
    answeredAt,
    lastError: errors.size > 0 ? [...errors.values()].sort().join("; ") : undefined,
  };
}

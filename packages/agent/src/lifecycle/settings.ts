import { type AgentConfiguration, defaultConfiguration } from "../config/index.ts";

/** Times in milliseconds. */
export interface LifecycleSettings {
  /** From the end of a relist to the start of the next; 1 s as in the kubelet (genericPlegRelistPeriod). */
  relistPeriodMs: number;
  /** The same while the runtime's container events are reliable. */
  eventedRelistPeriodMs: number;
  /** Time without a relist after which the health check fails; 3 min as in the kubelet (genericPlegRelistThreshold). */
  unhealthyAfterMs: number;
  /** Timeout of one call to the runtime; the kubelet's default (runtimeRequestTimeout). */
  callDeadlineMs: number;
  /** How long a relist waits for a pod's inspection; a pod that takes longer is stale. */
  inspectionPatienceMs: number;
  /** Number of concurrent inspections: initially, and the bounds between which it adapts to the runtime's speed. */
  inspections: { initial: number; min: number; max: number };
  /** Maximum number of overdue inspections; beyond it no new inspection is started. */
  maxOverdue: number;
  /** Number of events retained in the log. */
  logCapacity: number;
  /** Number of events persisted in the state database; restoring them delays the start. */
  savedEvents: number;
  /** Maximum number of queued requests to read single pods. */
  requestLimit: number;
  /** Whether to use the runtime's container events. */
  useRuntimeEvents: boolean;
  /** How long an event stream must stay open to count as supported. */
  minStreamMs: number;
  /** How much later than a list a hint may arrive without counting as missed. */
  hintGraceMs: number;
  /** How long relists use the short period after a change without a hint. */
  hintDistrustMs: number;
  /** How long after the start snapshots and readings wait for the first list. */
  firstListTimeoutMs: number;
  /** Interval at which a runtime without container events is queried for its version. */
  versionPollMs: number;
}

// What no operator has to set.
const fixed = {
  maxOverdue: 16,
  requestLimit: 1_000,
  minStreamMs: 1_000,
  hintGraceMs: 1_000,
  hintDistrustMs: 300_000,
  firstListTimeoutMs: 10_000,
  versionPollMs: 30_000,
} as const satisfies Partial<LifecycleSettings>;

/** All settings, of the configuration. */
export function lifecycleSettingsOf({
  lifecycle,
  runtime,
}: Pick<AgentConfiguration, "lifecycle" | "runtime">): LifecycleSettings {
  const { maxInspections } = lifecycle;
  return {
    ...fixed,
    relistPeriodMs: lifecycle.relistPeriod,
    eventedRelistPeriodMs: lifecycle.eventedRelistPeriod,
    unhealthyAfterMs: lifecycle.unhealthyAfter,
    // The client's own deadline comes first: its error names the call.
    callDeadlineMs: runtime.requestTimeout + 1_000,
    inspectionPatienceMs: lifecycle.inspectionPatience,
    inspections: { initial: Math.min(10, maxInspections), min: 1, max: maxInspections },
    logCapacity: lifecycle.logCapacity,
    savedEvents: lifecycle.savedEvents,
    useRuntimeEvents: lifecycle.useRuntimeEvents,
  };
}

/** All settings; those that are not given as the configuration has them by default. */
export function completeLifecycleSettings(given: Partial<LifecycleSettings> = {}): LifecycleSettings {
  return { ...lifecycleSettingsOf(defaultConfiguration()), ...given };
}

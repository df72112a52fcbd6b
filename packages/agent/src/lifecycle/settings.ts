import { type AgentConfiguration, defaultConfiguration } from "@nodekeeper/api/settings";

/** Durations are in milliseconds. */
export interface LifecycleSettings {
  /** From the end of a relist to the start of the next. 1 s as in the kubelet (genericPlegRelistPeriod). */
  relistPeriodMs: number;
  /** The relist period while the runtime's container events are reliable. */
  eventedRelistPeriodMs: number;
  /**
   * Time without a relist after which the health check fails. 3 min as in the kubelet
   * (genericPlegRelistThreshold).
   */
  unhealthyAfterMs: number;
  /** Timeout of one call to the runtime: 1 s more than `runtime.requestTimeout`. */
  callDeadlineMs: number;
  /** How long a relist waits for the inspection of a pod. After that, the pod is stale. */
  inspectionPatienceMs: number;
  /**
   * Number of concurrent inspections: the initial value, and the range in which it adapts to the speed of the
   * runtime.
   */
  inspections: { initial: number; min: number; max: number };
  /**
   * Maximum number of overdue calls to the runtime. No further inspection or list of a pod starts while it is
   * reached.
   */
  maxOverdue: number;
  /** Number of events to retain in the log. */
  logCapacity: number;
  /** Number of events to persist in the state database. Restoring them delays the start. */
  savedEvents: number;
  /** Maximum number of queued requests to read single pods. */
  requestLimit: number;
  /** Whether to use the runtime's container events. */
  useRuntimeEvents: boolean;
  /** How long an event stream must stay open to count as supported. */
  minStreamMs: number;
  /** How much later than a list a hint may arrive without a miss being counted. */
  hintGraceMs: number;
  /** How long relists use the short period after a missed change. */
  hintDistrustMs: number;
  /**
   * How long after the start snapshots and readings wait for the first list. Shorter than the timeout of HTTP
   * API requests.
   */
  firstListTimeoutMs: number;
  /** How often a runtime without container events is queried for its version. */
  versionPollMs: number;
}

// Settings that are not configurable.
const fixed = {
  maxOverdue: 16,
  requestLimit: 1_000,
  minStreamMs: 1_000,
  hintGraceMs: 1_000,
  hintDistrustMs: 300_000,
  firstListTimeoutMs: 8_000,
  versionPollMs: 30_000,
} as const satisfies Partial<LifecycleSettings>;

/** Returns the settings from the configuration. */
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
    // The client's own deadline is shorter: its error names the call.
    callDeadlineMs: runtime.requestTimeout + 1_000,
    inspectionPatienceMs: lifecycle.inspectionPatience,
    inspections: { initial: Math.min(10, maxInspections), min: 1, max: maxInspections },
    logCapacity: lifecycle.logCapacity,
    savedEvents: lifecycle.savedEvents,
    useRuntimeEvents: lifecycle.useRuntimeEvents,
  };
}

/** Completes settings with the defaults of the configuration. */
export function completeLifecycleSettings(given: Partial<LifecycleSettings> = {}): LifecycleSettings {
  return { ...lifecycleSettingsOf(defaultConfiguration()), ...given };
}

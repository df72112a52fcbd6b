import { type AgentConfiguration, defaultConfiguration } from "@nodekeeper/api/settings";

// Not configurable. Tests override them.
const fixed = {
  /** Initial number of concurrent inspections, if it is below `maxInspections`. */
  initialInspections: 10,
  /**
   * Maximum number of overdue calls to the runtime. No further inspection or list of a pod starts while it is
   * reached.
   */
  maxOverdue: 16,
  /** Maximum number of queued requests to read single pods. */
  requestLimit: 1_000,
  /**
   * Time after which an event stream without events counts as open. A stream that ends earlier, without an event and
   * without an error, counts as unsupported.
   */
  minStreamMs: 1_000,
  /**
   * Longest period of relists while nothing has changed since the event stream was opened, if it is below
   * `eventedRelistPeriod`.
   */
  quietRelistPeriod: 10_000,
  /** How much later than a list a hint may arrive without a miss being counted. */
  hintGraceMs: 1_000,
  /** How long relists use the short period after a missed change. */
  hintDistrustMs: 300_000,
  /**
   * How long after the start snapshots and readings wait for the first list. Shorter than the timeout of HTTP
   * API requests.
   */
  firstListTimeoutMs: 8_000,
  /** How often a runtime without container events is queried for its version. */
  versionPollMs: 30_000,
};

/**
 * The configuration and the fixed settings. Durations are in milliseconds. The defaults of `relistPeriod` and
 * `unhealthyAfter` are the kubelet's (genericPlegRelistPeriod, genericPlegRelistThreshold).
 */
export type LifecycleSettings = Omit<AgentConfiguration["lifecycle"], "enabled"> &
  Pick<AgentConfiguration["runtime"], "requestTimeout"> &
  typeof fixed;

/** Completes settings with the defaults of the configuration. */
export function completeLifecycleSettings(given: Partial<LifecycleSettings> = {}): LifecycleSettings {
  const { lifecycle, runtime } = defaultConfiguration();
  return { ...fixed, ...lifecycle, requestTimeout: runtime.requestTimeout, ...given };
}

/**
 * Returns the deadline of one call of `Runtime`, in milliseconds. It is 1 s longer than the client's `requestTimeout`,
 * so that the client fails first, with an error that names the CRI call.
 */
export function callDeadlineOf({ requestTimeout }: LifecycleSettings): number {
  return requestTimeout + 1_000;
}

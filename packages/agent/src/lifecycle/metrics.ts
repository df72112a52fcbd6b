import { metricTable, type Registry } from "@nodekeeper/core/lib";

export const hintStates = ["starting", "healthy", "silent", "failing", "unsupported"] as const;

/**
 * `starting`: the stream is requested; `healthy`: it is open; `failing`: it failed and is retried with
 * backoff; `silent`: it is open, but a change was missed and no hint has arrived in time since;
 * `unsupported`: the runtime does not support container events, or they are disabled; retried when the
 * runtime restarts.
 */
export type HintState = (typeof hintStates)[number];

const seconds = [0.01, 0.1, 1, 10];

/** The module's metrics. Names and meanings follow the kubelet's pleg_* metrics if they exist. */
export function createLifecycleMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricTable(registry, "nodekeeper_lifecycle_");
  return {
    relistDuration: histogram(
      "relist_duration_seconds",
      "Duration of relists in seconds, including inspections.",
      seconds,
    ),
    relistInterval: histogram(
      "relist_interval_seconds",
      "Interval between the starts of two relists in seconds.",
      seconds,
    ),
    podRelistDuration: histogram(
      "pod_relist_duration_seconds",
      "Duration of the reading of a single pod in seconds.",
      seconds,
    ),
    lastSeen: gauge(
      "last_seen_seconds",
      "Time of the last successful list of all pods, in seconds since the epoch.",
    ),
    relistFailures: counter("relist_failures_total", "Number of relists whose list failed, by error code.", [
      "code",
    ]),
    hints: counter("hints_total", "Number of container events received from the runtime."),
    hintMisses: counter(
      "hint_misses_total",
      "Number of changes found by a relist without a container event of the runtime.",
    ),
    inspections: counter("inspections_total", "Number of pod inspections."),
    inspectionFailures: counter(
      "inspection_failures_total",
      "Number of pod inspections that failed or timed out.",
    ),
    requestsRefused: counter(
      "requests_refused_total",
      "Number of requests to read a single pod that were replaced by a relist because too many were queued.",
    ),
    requestsAnswered: counter(
      "requests_answered_total",
      "Number of requests to read a single pod that a relist satisfied before they were executed.",
    ),
    fellOff: counter(
      "consumers_fell_off_total",
      "Number of times a consumer fell behind the retained events and got a snapshot.",
    ),
    saveFailures: counter(
      "log_save_failures_total",
      "Number of failed writes of the event log to the state database.",
    ),
  };
}

export type LifecycleMetrics = ReturnType<typeof createLifecycleMetrics>;

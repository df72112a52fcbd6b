import { metricTable, type Registry } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";

const hintStates = ["starting", "healthy", "silent", "failing", "unsupported"] as const;

/**
 * `starting`: the stream is requested; `healthy`: it is open; `failing`: it failed and is retried with
 * backoff; `silent`: it is open, but a change was missed and no hint has arrived in time since;
 * `unsupported`: the runtime does not support container events, or they are disabled; retried when the
 * runtime restarts.
 */
export type HintState = (typeof hintStates)[number];

/** Values read at each scrape. */
export interface LifecycleReadings {
  /** Age of the relist in progress in seconds; 0 if there is none. */
  inFlightSeconds(): number;
  pods(): readonly Pod[];
  stalePods(): number;
  overdueCalls(): number;
  inspectionLimit(): number;
  logLength(): number;
  consumers(): number;
  slowestConsumer(): number;
  hintState(): HintState;
  /** Current relist period in seconds, from the end of a relist to the start of the next. */
  relistPeriodSeconds(): number;
}

const seconds = [0.01, 0.1, 1, 10];
const containerStates = ["created", "running", "exited", "unknown"] as const;

/** The module's metrics. Names and meanings follow the kubelet's pleg_* metrics if they exist. */
export function createLifecycleMetrics(registry: Registry, readings: LifecycleReadings) {
  const { counter, gauge, histogram, scraped, scrapedBy } = metricTable(registry, "nodekeeper_lifecycle_");
  scraped(
    "relist_in_flight_seconds",
    "Age of the relist in progress, in seconds; 0 if there is none.",
    readings.inFlightSeconds,
  );
  scraped("stale_pods", "Number of pods whose last inspection failed.", readings.stalePods);
  scraped(
    "overdue_calls",
    "Number of calls to the runtime that exceeded lifecycle.inspectionPatience and have no response.",
    readings.overdueCalls,
  );
  scraped("inspection_limit", "Current limit of concurrent pod inspections.", readings.inspectionLimit);
  scraped("log_events", "Number of events in the event log.", readings.logLength);
  scraped("consumers", "Number of consumers of the event log.", readings.consumers);
  scraped(
    "slowest_consumer_events",
    "Number of events that the slowest consumer has not read.",
    readings.slowestConsumer,
  );
  scraped(
    "relist_period_seconds",
    "Current relist period in seconds: lifecycle.relistPeriod or lifecycle.eventedRelistPeriod.",
    readings.relistPeriodSeconds,
  );
  scraped("pods", "Number of pods in the container runtime.", () => readings.pods().length);
  scrapedBy(
    "hint_stream_state",
    "State of the runtime's container event stream: 1 for the current state.",
    ["state"],
    () => hintStates.map((state) => [{ state }, state === readings.hintState() ? 1 : 0]),
  );
  scrapedBy("containers", "Number of containers and sandboxes by state.", ["kind", "state"], () => {
    // Sets all states, so that a state without containers is reported as 0.
    const counts = countContainers(readings.pods());
    return ["container", "sandbox"].flatMap((kind) =>
      containerStates.map((state) => [{ kind, state }, counts.get(`${kind} ${state}`) ?? 0] as const),
    );
  });
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

function countContainers(pods: readonly Pod[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { containers, sandboxes } of pods) {
    for (const { kind, state } of [...containers, ...sandboxes]) {
      const key = `${kind} ${state}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  }
  return counts;
}

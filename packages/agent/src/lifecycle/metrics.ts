import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { HintState } from "./hints.ts";

/** Values read on each scrape. */
export interface LifecycleReadings {
  /** Age of the relist in progress, seconds; 0 if there is none. */
  inFlightSeconds(): number;
  pods(): readonly Pod[];
  stalePods(): number;
  overdueCalls(): number;
  inspectionLimit(): number;
  logLength(): number;
  consumers(): number;
  slowestConsumer(): number;
  hintState(): HintState;
  /** Current relist period, from the end of a relist to the start of the next, seconds. */
  relistPeriodSeconds(): number;
}

const PREFIX = "nodekeeper_lifecycle_";
const seconds = [0.01, 0.1, 0.5, 2, 10, 60];
const hintStates: readonly HintState[] = ["starting", "healthy", "failing", "unsupported"];
const containerStates = ["created", "running", "exited", "unknown"] as const;

/** The module's metrics. Names and meanings follow the kubelet's pleg_* metrics where these exist. */
export function createLifecycleMetrics(registry: Registry, readings: LifecycleReadings) {
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name: PREFIX + name, help, registers });
  const histogram = (name: string, help: string) =>
    new Histogram({ name: PREFIX + name, help, buckets: seconds, registers });
  const live = (name: string, help: string, read: () => number) =>
    new Gauge({
      name: PREFIX + name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });

  live(
    "relist_in_flight_seconds",
    "Age of the relist in progress, in seconds; 0 if there is none.",
    readings.inFlightSeconds,
  );
  live("stale_pods", "Number of pods whose last inspection failed.", readings.stalePods);
  live(
    "overdue_calls",
    "Number of calls to the runtime that exceeded lifecycle.inspectionPatience and have no response.",
    readings.overdueCalls,
  );
  live("inspection_limit", "Current limit of concurrent pod inspections.", readings.inspectionLimit);
  live("log_events", "Number of events in the event log.", readings.logLength);
  live("consumers", "Number of consumers of the event log.", readings.consumers);
  live(
    "slowest_consumer_events",
    "Number of events that the slowest consumer has not read.",
    readings.slowestConsumer,
  );
  live(
    "relist_period_seconds",
    "Current relist period in seconds: lifecycle.relistPeriod or lifecycle.eventedRelistPeriod.",
    readings.relistPeriodSeconds,
  );
  live("pods", "Number of pods in the container runtime.", () => readings.pods().length);
  new Gauge({
    name: `${PREFIX}hint_stream_state`,
    help: "State of the runtime's container event stream: 1 for the current state.",
    labelNames: ["state"],
    registers,
    collect() {
      for (const state of hintStates) this.set({ state }, state === readings.hintState() ? 1 : 0);
    },
  });
  new Gauge({
    name: `${PREFIX}containers`,
    help: "Number of containers and sandboxes by state.",
    labelNames: ["kind", "state"],
    registers,
    collect() {
      // All states are set, so that a state without containers is reported as 0.
      const counts = countContainers(readings.pods());
      for (const kind of ["container", "sandbox"]) {
        for (const state of containerStates) this.set({ kind, state }, counts.get(`${kind} ${state}`) ?? 0);
      }
    },
  });

  return {
    relistDuration: histogram(
      "relist_duration_seconds",
      "Duration of relists in seconds, including inspections.",
    ),
    relistInterval: histogram(
      "relist_interval_seconds",
      "Interval between the starts of two relists in seconds.",
    ),
    podRelistDuration: histogram(
      "pod_relist_duration_seconds",
      "Duration of the reading of a single pod in seconds.",
    ),
    lastSeen: new Gauge({
      name: `${PREFIX}last_seen_seconds`,
      help: "Time of the last successful list of all pods, in seconds since the epoch.",
      registers,
    }),
    relistFailures: new Counter({
      name: `${PREFIX}relist_failures_total`,
      help: "Number of relists whose list failed, by error code.",
      labelNames: ["code"],
      registers,
    }),
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

import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import type { Pod } from "../runtime/index.ts";
import type { HintState } from "./hints.ts";

/** What is read at each scrape. */
export interface LifecycleReadings {
  /** How long the relist in flight takes so far, seconds; 0 when there is none. */
  inFlightSeconds(): number;
  pods(): readonly Pod[];
  stalePods(): number;
  overdueCalls(): number;
  inspectionLimit(): number;
  logLength(): number;
  consumers(): number;
  slowestConsumer(): number;
  hintState(): HintState;
  /** From the end of a relist to the start of the next, seconds. */
  relistPeriodSeconds(): number;
}

const PREFIX = "nodekeeper_lifecycle_";
const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const hintStates: readonly HintState[] = ["starting", "healthy", "failing", "unsupported"];
const containerStates = ["created", "running", "exited", "unknown"] as const;

/** The metrics of the room; names and meanings follow the kubelet's pleg_* where it has them. */
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
    "How long the relist in flight takes so far; 0 when there is none.",
    readings.inFlightSeconds,
  );
  live("stale_pods", "Pods that could not be inspected when they last changed.", readings.stalePods);
  live(
    "overdue_calls",
    "Calls to the runtime that take so long that nobody waits for them.",
    readings.overdueCalls,
  );
  live("inspection_limit", "How many pods may be inspected at once now.", readings.inspectionLimit);
  live("log_events", "Events in the log.", readings.logLength);
  live("consumers", "Consumers of the event log.", readings.consumers);
  live(
    "slowest_consumer_events",
    "How many events the slowest consumer is behind.",
    readings.slowestConsumer,
  );
  live(
    "relist_period_seconds",
    "From the end of a relist to the start of the next as it is now: the short period, or that with runtime events.",
    readings.relistPeriodSeconds,
  );
  live("pods", "Pods known to the runtime.", () => readings.pods().length);
  new Gauge({
    name: `${PREFIX}hint_stream_state`,
    help: "1 for the state that the runtime's event stream is in.",
    labelNames: ["state"],
    registers,
    collect() {
      for (const state of hintStates) this.set({ state }, state === readings.hintState() ? 1 : 0);
    },
  });
  new Gauge({
    name: `${PREFIX}containers`,
    help: "Containers and sandboxes by state.",
    labelNames: ["kind", "state"],
    registers,
    collect() {
      // Every state each time: one that no container is in any more must say 0.
      const counts = countContainers(readings.pods());
      for (const kind of ["container", "sandbox"]) {
        for (const state of containerStates) this.set({ kind, state }, counts.get(`${kind} ${state}`) ?? 0);
      }
    },
  });

  return {
    relistDuration: histogram("relist_duration_seconds", "How long relists took, inspections included."),
    relistInterval: histogram("relist_interval_seconds", "From the start of a relist to that of the next."),
    podRelistDuration: histogram("pod_relist_duration_seconds", "How long it took to read one pod alone."),
    lastSeen: new Gauge({
      name: `${PREFIX}last_seen_seconds`,
      help: "When all pods were last listed, seconds since the epoch.",
      registers,
    }),
    relistFailures: new Counter({
      name: `${PREFIX}relist_failures_total`,
      help: "Relists whose list failed, by error code.",
      labelNames: ["code"],
      registers,
    }),
    hints: counter("hints_total", "Events of the runtime, taken as hints."),
    hintMisses: counter("hint_misses_total", "Changes that a relist found and no hint had told."),
    inspections: counter("inspections_total", "Pods inspected."),
    inspectionFailures: counter(
      "inspection_failures_total",
      "Readings of a pod that failed or took too long.",
    ),
    requestsRefused: counter(
      "requests_refused_total",
      "Requests to read a pod that a relist had to stand in for.",
    ),
    requestsAnswered: counter(
      "requests_answered_total",
      "Requests to read a pod that a relist answered first.",
    ),
    fellOff: counter(
      "consumers_fell_off_total",
      "Times a consumer was too slow for the log and got a snapshot.",
    ),
    saveFailures: counter("log_save_failures_total", "Writes of the log to the state database that failed."),
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

import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";

export type RuntimeMetrics = ReturnType<typeof createRuntimeMetrics>;

/** The module's metrics. `method` is a CRI method; `result` is "ok" or an error code. */
export function createRuntimeMetrics(registry: Registry) {
  const registers = [registry];
  let oldestCalls = () => new Map<string, number>();
  const methods = new Set<string>();
  new Gauge({
    name: "nodekeeper_runtime_oldest_call_seconds",
    help: "Age in seconds of the oldest call without a response, by method; 0 if there is none.",
    labelNames: ["method"] as const,
    registers,
    collect() {
      const oldest = oldestCalls();
      for (const method of oldest.keys()) methods.add(method);
      for (const method of methods) this.set({ method }, oldest.get(method) ?? 0);
    },
  });
  return {
    /** Returns the ages of the oldest calls in progress on each scrape: seconds by method. */
    oldestCallOf(read: () => Map<string, number>): void {
      oldestCalls = read;
    },
    callDuration: new Histogram({
      name: "nodekeeper_runtime_call_duration_seconds",
      help: "Duration of calls to the container runtime in seconds, by method and result.",
      labelNames: ["method", "result"] as const,
      buckets: [0.02, 0.2, 2, 20],
      registers,
    }),
    callsInFlight: new Gauge({
      name: "nodekeeper_runtime_calls_in_flight",
      help: "Number of calls to the container runtime in progress, including the event stream.",
      labelNames: ["method"] as const,
      registers,
    }),
    connections: new Counter({
      name: "nodekeeper_runtime_connections_total",
      help: "Number of connections made to the container runtime; increases when the runtime restarts.",
      registers,
    }),
    anomalies: new Counter({
      name: "nodekeeper_runtime_anomalies_total",
      help: "Number of anomalies in the runtime's responses, by kind.",
      labelNames: ["kind"] as const,
      registers,
    }),
  };
}

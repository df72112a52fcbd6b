import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";

export type RuntimeMetrics = ReturnType<typeof createRuntimeMetrics>;

/** The room's metrics. `method` is a call of CRI; `result` is "ok" or a code of the error catalogue. */
export function createRuntimeMetrics(registry: Registry) {
  const registers = [registry];
  let oldestCalls = () => new Map<string, number>();
  const methods = new Set<string>();
  new Gauge({
    name: "nodekeeper_runtime_oldest_call_seconds",
    help: "How long the oldest call that has no answer yet takes so far, by method; 0 where there is none.",
    labelNames: ["method"] as const,
    registers,
    collect() {
      const oldest = oldestCalls();
      for (const method of oldest.keys()) methods.add(method);
      for (const method of methods) this.set({ method }, oldest.get(method) ?? 0);
    },
  });
  return {
    /** Where the ages of the oldest calls in flight are read at each scrape: seconds by method. */
    oldestCallOf(read: () => Map<string, number>): void {
      oldestCalls = read;
    },
    callDuration: new Histogram({
      name: "nodekeeper_runtime_call_duration_seconds",
      help: "How long calls to the container runtime took, by method and result.",
      labelNames: ["method", "result"] as const,
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60],
      registers,
    }),
    callsInFlight: new Gauge({
      name: "nodekeeper_runtime_calls_in_flight",
      help: "Calls to the container runtime that have no answer yet; the event stream is one.",
      labelNames: ["method"] as const,
      registers,
    }),
    connections: new Counter({
      name: "nodekeeper_runtime_connections_total",
      help: "Connections made to the container runtime; it grows when the runtime restarts.",
      registers,
    }),
    oddities: new Counter({
      name: "nodekeeper_runtime_oddities_total",
      help: "Things in the runtime's answers that should not be, by kind.",
      labelNames: ["kind"] as const,
      registers,
    }),
  };
}

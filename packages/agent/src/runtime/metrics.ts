import { metricTable, type Registry } from "@nodekeeper/core/lib";

export type RuntimeMetrics = ReturnType<typeof createRuntimeMetrics>;

/** The module's metrics. `method` is a CRI method; `result` is "ok" or an error code. */
export function createRuntimeMetrics(registry: Registry) {
  const { counter, gauge, histogram, scrapedBy } = metricTable(registry, "nodekeeper_runtime_");
  let oldestCalls = () => new Map<string, number>();
  const methods = new Set<string>();
  scrapedBy(
    "oldest_call_seconds",
    "Age in seconds of the oldest call without a response, by method; 0 if there is none.",
    ["method"],
    () => {
      const oldest = oldestCalls();
      for (const method of oldest.keys()) methods.add(method);
      return [...methods].map((method) => [{ method }, oldest.get(method) ?? 0]);
    },
  );
  return {
    /** Sets the function that returns the age of the oldest call in progress, in seconds by method. */
    oldestCallOf(read: () => Map<string, number>): void {
      oldestCalls = read;
    },
    callDuration: histogram(
      "call_duration_seconds",
      "Duration of calls to the container runtime in seconds, by method and result.",
      [0.02, 0.2, 2, 20],
      ["method", "result"],
    ),
    callsInFlight: gauge(
      "calls_in_flight",
      "Number of calls to the container runtime in progress, including the event stream.",
      ["method"],
    ),
    connections: counter(
      "connections_total",
      "Number of connections made to the container runtime; increases when the runtime restarts.",
    ),
    anomalies: counter("anomalies_total", "Number of anomalies in the runtime's responses, by kind.", [
      "kind",
    ]),
  };
}

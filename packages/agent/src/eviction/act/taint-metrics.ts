import { metricTable, type Registry } from "@nodekeeper/core/lib";

export function createTaintMetrics(registry: Registry) {
  const { counter } = metricTable(registry, "nodekeeper_eviction_");
  return {
    writes: counter(
      "taint_writes_total",
      "Writes of the Node's taints by result: written, conflict (read again and retried), failed.",
      ["result"],
    ),
  };
}

export type TaintMetrics = ReturnType<typeof createTaintMetrics>;

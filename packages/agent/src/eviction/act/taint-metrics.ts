import { Counter, type Registry } from "@nodekeeper/core/lib";

/** Metrics of the Node's taints. */
export function createTaintMetrics(registry: Registry) {
  return {
    writes: new Counter({
      name: "nodekeeper_eviction_taint_writes_total",
      help: "Writes of the Node's taints by result: written, conflict (read again and retried), failed.",
      labelNames: ["result"],
      registers: [registry],
    }),
  };
}

export type TaintMetrics = ReturnType<typeof createTaintMetrics>;

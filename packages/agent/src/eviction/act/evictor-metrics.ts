import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";

/** The metrics of evictions from their decision to their end. */
export function createEvictorMetrics(registry: Registry) {
  const registers = [registry];
  return {
    kills: new Counter({
      name: "nodekeeper_eviction_kills_total",
      help: "Tries to evict a pod by way and result: accepted, gone, budget (a disruption budget forbids it), forbidden, failed, retry.",
      labelNames: ["killer", "result"],
      registers,
    }),
    ended: new Counter({
      name: "nodekeeper_eviction_ended_total",
      help: "Evictions that ended, by outcome: gone, overdue (still terminating, followed on), failed, withdrawn.",
      labelNames: ["outcome"],
      registers,
    }),
    underWay: new Gauge({
      name: "nodekeeper_eviction_under_way",
      help: "Evictions decided and not ended, by phase: waiting (not accepted yet), sent.",
      labelNames: ["phase"],
      registers,
    }),
    duration: new Histogram({
      name: "nodekeeper_eviction_duration_seconds",
      help: "From the decision until the pod was deleted.",
      buckets: [0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800],
      registers,
    }),
  };
}

export type EvictorMetrics = ReturnType<typeof createEvictorMetrics>;

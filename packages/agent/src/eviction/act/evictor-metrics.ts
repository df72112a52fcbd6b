import { Counter, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import type { OutcomeResult } from "../decide/outcome.ts";

// Those that alerts and dashboards watch: each series costs memory on every node.
const countedFromZero: readonly OutcomeResult[] = ["terminated", "overdue", "failed"];

/** Metrics of evictions from the decision to the end. */
export function createEvictorMetrics(registry: Registry) {
  const registers = [registry];
  const metrics = {
    kills: new Counter({
      name: "nodekeeper_eviction_kills_total",
      help: "Eviction attempts by killer and result: accepted, terminated (the pod had ended already), budget (refused by a PodDisruptionBudget), forbidden, failed, retry.",
      labelNames: ["killer", "result"],
      registers,
    }),
    ended: new Counter({
      name: "nodekeeper_eviction_ended_total",
      help: "Evictions by outcome: terminated (accepted, then the pod was deleted or its containers were stopped), superseded (the pod ended before a request was accepted), unknown (the pod ended, acceptance not recorded), overdue (still terminating after its deadline), failed, withdrawn.",
      labelNames: ["outcome"],
      registers,
    }),
    underWay: new Gauge({
      name: "nodekeeper_eviction_under_way",
      help: "Evictions in progress by phase: waiting (not accepted yet), sent (accepted, pod not deleted yet).",
      labelNames: ["phase"],
      registers,
    }),
    duration: new Histogram({
      name: "nodekeeper_eviction_duration_seconds",
      help: "Time from the decision until the pod was deleted.",
      buckets: [1, 10, 30, 120, 600],
      registers,
    }),
  };
  // From 0 on: a rise from no series to the first failure is none for Prometheus' increase().
  for (const outcome of countedFromZero) metrics.ended.inc({ outcome }, 0);
  return metrics;
}

export type EvictorMetrics = ReturnType<typeof createEvictorMetrics>;

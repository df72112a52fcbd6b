import type { OutcomeResult } from "@nodekeeper/api/decide";
import { metricTable, type Registry } from "@nodekeeper/core/lib";

// The outcomes that alerts and dashboards use. Each series costs memory on every node.
const countedFromZero: readonly OutcomeResult[] = ["terminated", "overdue", "failed"];

/** Metrics of evictions, from the decision to the end. */
export function createEvictorMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricTable(registry, "nodekeeper_eviction_");
  const metrics = {
    kills: counter(
      "kills_total",
      "Eviction attempts by killer and result: accepted, terminated (the pod had ended already), budget (refused by a PodDisruptionBudget), forbidden, failed, retry.",
      ["killer", "result"],
    ),
    ended: counter(
      "ended_total",
      "Evictions by outcome: terminated (accepted, then the pod was deleted or its containers were stopped), superseded (the pod ended before a request was accepted), unknown (the pod ended, acceptance not recorded), overdue (still terminating after its deadline), failed, withdrawn.",
      ["outcome"],
    ),
    underWay: gauge(
      "under_way",
      "Evictions in progress by phase: waiting (not accepted yet), sent (accepted, pod not deleted yet).",
      ["phase"],
    ),
    duration: histogram(
      "duration_seconds",
      "Time from the decision until the pod was deleted.",
      [1, 10, 30, 120, 600],
    ),
  };
  // Initialized to 0, because Prometheus' increase() does not count the first sample of a new series.
  for (const outcome of countedFromZero) metrics.ended.inc({ outcome }, 0);
  return metrics;
}

export type EvictorMetrics = ReturnType<typeof createEvictorMetrics>;

import type { ObservedPod } from "../../eviction/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import { victimOrder } from "./victim-order.ts";

/**
 * What pods are ranked by: reclaimed QoS level first, then lower priority first, or more memory first: as cgroups charge
 * it, anonymous, without idle page cache, or on the NUMA node that is short of it.
 */
export type RankingMetric = "qosLevel" | "priority" | "usage" | "rss" | "workingSet" | "nodeUsage";

/** All there are, for configuration. */
export const rankingMetrics: readonly RankingMetric[] = [
  "qosLevel",
  "priority",
  "usage",
  "rss",
  "workingSet",
  "nodeUsage",
];

/** A pod with what it uses. */
export interface MeasuredPod extends ObservedPod {
  memory: PodMemory;
  /** On the NUMA node in question, bytes. */
  nodeBytes: number | undefined;
}

/**
 * The pods in the order in which they are evicted. One of which a metric of the ranking is not known is left out (katalyst
 * puts such pods first).
 */
export function rankVictims(pods: readonly MeasuredPod[], ranking: readonly RankingMetric[]): MeasuredPod[] {
  return victimOrder(pods, (pod) => ranking.map((metric) => figureOf(pod, metric)));
}

// Greater goes first.
function figureOf({ pod, memory, nodeBytes }: MeasuredPod, metric: RankingMetric): number | undefined {
  switch (metric) {
    case "qosLevel":
      return pod.qosLevel === "reclaimed_cores" ? 1 : 0;
    case "priority":
      return -pod.priority;
    case "usage":
      return memory.usageBytes;
    case "rss":
      return memory.rssBytes;
    case "workingSet":
      return memory.workingSetBytes;
    case "nodeUsage":
      return nodeBytes;
  }
}

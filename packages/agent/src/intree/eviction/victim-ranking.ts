import type { ObservedPod } from "../../eviction/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import { victimOrder } from "./victim-order.ts";

/**
 * Ranking criteria: reclaimed QoS level first; lower priority first; or more memory first: as charged by the cgroup,
 * anonymous (rss), without inactive page cache (workingSet), or on the NUMA node under pressure (nodeUsage).
 */
export type RankingMetric = "qosLevel" | "priority" | "usage" | "rss" | "workingSet" | "nodeUsage";

/** All ranking criteria. */
export const rankingMetrics: readonly RankingMetric[] = [
  "qosLevel",
  "priority",
  "usage",
  "rss",
  "workingSet",
  "nodeUsage",
];

/** A pod with its memory readings. */
export interface MeasuredPod extends ObservedPod {
  memory: PodMemory;
  /** Usage on the NUMA node, bytes. */
  nodeBytes: number | undefined;
}

/**
 * Sorts pods in eviction order. Pods with an unknown metric are excluded (katalyst ranks them first).
 */
export function rankVictims(pods: readonly MeasuredPod[], ranking: readonly RankingMetric[]): MeasuredPod[] {
  return victimOrder(pods, (pod) => ranking.map((metric) => figureOf(pod, metric)));
}

// Greater values are evicted first.
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

import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { ObservedPod } from "../../eviction/index.ts";
import type { NodeMemory } from "../../host/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import { graceSeconds } from "./settings.ts";

/** Which pods are candidates: none, reclaimed pods, or all. */
export type Severity = "none" | "reclaimed" | "all";

const order: Readonly<Record<Severity, number>> = { none: 0, reclaimed: 1, all: 2 };

export function worseOf(a: Severity, b: Severity): Severity {
  return order[a] >= order[b] ? a : b;
}

/** Returns the candidate pods for a severity. */
export function candidatesFor(pods: readonly ObservedPod[], severity: Severity): readonly ObservedPod[] {
  if (severity === "none") return [];
  return severity === "all" ? pods : pods.filter(isReclaimed);
}

export function isReclaimed({ pod }: ObservedPod): boolean {
  return pod.qosLevel === "reclaimed_cores";
}

/** Returns the pods that are neither completed nor terminating: katalyst-core native.PodIsActive. */
export function activePods(pods: readonly ObservedPod[]): ObservedPod[] {
  return pods.filter(
    ({ pod }) => pod.phase !== "Succeeded" && pod.phase !== "Failed" && pod.deletionTimestamp === null,
  );
}

/**
 * Sorts pods in eviction order: by the first value descending, then by the second, and so on, finally by UID. Pods with
 * an unknown value are excluded, so that no pod is evicted without a reading.
 */
export function victimOrder<T extends ObservedPod>(
  pods: readonly T[],
  figuresOf: (pod: T) => readonly (number | undefined)[],
): T[] {
  const measured = pods.flatMap((pod) => {
    const figures = figuresOf(pod).filter((figure) => figure !== undefined);
    return figures.length === figuresOf(pod).length ? [{ pod, figures }] : [];
  });
  measured.sort((a, b) => {
    const at = a.figures.findIndex((figure, index) => figure !== b.figures[index]);
    return at < 0 ? (a.pod.pod.uid < b.pod.pod.uid ? -1 : 1) : b.figures[at]! - a.figures[at]!;
  });
  return measured.map(({ pod }) => pod);
}

/**
 * Ranking criteria: reclaimed QoS level first; lower priority first; or more memory first: as charged by the cgroup
 * (usage), anonymous (rss), without inactive page cache (workingSet), or on the NUMA node under pressure (nodeUsage).
 */
export type RankingMetric = keyof typeof figureOf;

// Greater values are evicted first.
const figureOf = {
  qosLevel: (pod: MeasuredPod) => (isReclaimed(pod) ? 1 : 0),
  priority: ({ pod }: MeasuredPod) => -pod.priority,
  usage: ({ memory }: MeasuredPod) => memory.usageBytes,
  rss: ({ memory }: MeasuredPod) => memory.rssBytes,
  workingSet: ({ memory }: MeasuredPod) => memory.workingSetBytes,
  nodeUsage: ({ nodeBytes }: MeasuredPod) => nodeBytes,
};

export const rankingMetrics = Object.keys(figureOf) as readonly RankingMetric[];

/** A pod with its memory readings. */
export interface MeasuredPod extends ObservedPod {
  memory: PodMemory;
  /** Usage on the NUMA node, bytes. */
  nodeBytes: number | undefined;
}

/** Sorts pods in eviction order. Pods with an unknown metric are excluded (katalyst ranks them first). */
export function rankVictims(pods: readonly MeasuredPod[], ranking: readonly RankingMetric[]): MeasuredPod[] {
  return victimOrder(pods, (pod) => ranking.map((metric) => figureOf[metric](pod)));
}

/**
 * Returns the pods that have a reading, with it.
 * @param nodeBytesOf returns a pod's memory on the node, bytes; undefined if unknown
 */
export function measuredPods(
  pods: readonly ObservedPod[],
  memories: ReadonlyMap<string, PodMemory>,
  nodeBytesOf: (memory: PodMemory) => number | undefined,
): MeasuredPod[] {
  return pods.flatMap(({ pod, details }) => {
    const memory = memories.get(pod.uid);
    return memory ? [{ pod, details, memory, nodeBytes: nodeBytesOf(memory) }] : [];
  });
}

/** How victims of memory pressure are selected. */
export type MemoryVictimSettings = EvictionSettings["systemMemory" | "numaMemory"];

/**
 * Returns the pods to evict for a shortage of a NUMA node's memory, in order.
 * @param measured the candidates of the severity that have a reading
 */
export function memoryVictims(
  measured: readonly MeasuredPod[],
  { totalBytes }: NodeMemory,
  { victimMinimumShare, ranking }: MemoryVictimSettings,
): MeasuredPod[] {
  const large = measured.filter(({ nodeBytes }) => (nodeBytes ?? -1) >= victimMinimumShare * totalBytes);
  return rankVictims(large, ranking);
}

/** Returns the grace period of victims, seconds; null for that of the pod spec. */
export function graceFor(severity: Severity, settings: MemoryVictimSettings): number | null {
  return graceSeconds(severity === "reclaimed" ? settings.reclaimedGracePeriod : settings.gracePeriod);
}

/** Returns a pod's memory on one NUMA node, bytes. On a machine with one node this is all of its usage. */
export function bytesOnNode(
  memory: PodMemory,
  node: NodeMemory,
  nodes: readonly NodeMemory[],
): number | undefined {
  return memory.nodeBytes?.get(node.id) ?? (nodes.length === 1 ? memory.usageBytes : undefined);
}

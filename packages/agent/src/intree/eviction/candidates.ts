import type { ObservedPod } from "../../eviction/index.ts";
import type { NodeMemory } from "../../host/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import type { MeasuredPod } from "./victim-ranking.ts";

/** A pod's memory on one NUMA node, bytes: all of its usage on a machine with one node. */
export function bytesOnNode(
  memory: PodMemory,
  node: NodeMemory,
  nodes: readonly NodeMemory[],
): number | undefined {
  return memory.nodeBytes?.get(node.id) ?? (nodes.length === 1 ? memory.usageBytes : undefined);
}

/** The node with the least free memory; undefined if there are no nodes. */
export function shortestNode(nodes: readonly NodeMemory[]): NodeMemory | undefined {
  return [...nodes].sort((a, b) => a.freeBytes - b.freeBytes || a.id - b.id)[0];
}

/** The pods with a memory reading, with their usage on a NUMA node. */
export function measurePods(
  pods: readonly ObservedPod[],
  memories: ReadonlyMap<string, PodMemory>,
  nodeBytesOf: (memory: PodMemory) => number | undefined,
): MeasuredPod[] {
  const measured: MeasuredPod[] = [];
  for (const { pod, details } of pods) {
    const memory = memories.get(pod.uid);
    if (memory) measured.push({ pod, details, memory, nodeBytes: nodeBytesOf(memory) });
  }
  return measured;
}

/** The pods that use at least a share of the node's memory. Pods with unknown usage are excluded. */
export function usingAtLeast(
  pods: readonly MeasuredPod[],
  { totalBytes }: NodeMemory,
  minimumShare: number,
): MeasuredPod[] {
  return pods.filter(({ nodeBytes }) => nodeBytes !== undefined && nodeBytes >= minimumShare * totalBytes);
}

import type { ObservedPod } from "../../eviction/index.ts";
import type { NodeMemory } from "../../host/index.ts";
import type { PodMemory } from "../../pod-usage/index.ts";
import type { MeasuredPod } from "./victim-ranking.ts";

/** A pod's memory on one NUMA node, bytes: on a machine of one node all it uses is there. */
export function bytesOnNode(
  memory: PodMemory,
  node: NodeMemory,
  nodes: readonly NodeMemory[],
): number | undefined {
  return memory.nodeBytes?.get(node.id) ?? (nodes.length === 1 ? memory.usageBytes : undefined);
}

/** The node with the least free memory; undefined where there is none. */
export function shortestNode(nodes: readonly NodeMemory[]): NodeMemory | undefined {
  return [...nodes].sort((a, b) => a.freeBytes - b.freeBytes || a.id - b.id)[0];
}

/** The pods of which the memory is known, with what they use on a node. */
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

/** Those that use enough on the node for their end to help it. A pod whose use there is not known is none of them. */
export function usingAtLeast(
  pods: readonly MeasuredPod[],
  { totalBytes }: NodeMemory,
  minimumShare: number,
): MeasuredPod[] {
  return pods.filter(({ nodeBytes }) => nodeBytes !== undefined && nodeBytes >= minimumShare * totalBytes);
}

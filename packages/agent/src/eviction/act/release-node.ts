import { type KubeClient, nodes } from "@nodekeeper/core/kube";
import { codeOf } from "@nodekeeper/core/lib";
import { CONDITION_MANAGER, EVICTION_BLOCKED } from "./node-condition.ts";
import { mergeNodeTaints, readNodeTaints, taintPatch } from "./node-taints.ts";

export interface NodeReleaseOptions {
  client: KubeClient;
  nodeName: string;
  fieldManager: string;
  /** Whether to write nothing. */
  isDryRun: boolean;
  signal: AbortSignal;
}

/**
 * Removes from a Node the taints that are proven to be the agent's, the annotation that lists them, and the condition
 * EvictionBlocked. Yields the path of each removed taint and of the condition after its removal, for example
 * "status.conditions[EvictionBlocked]"; in dry run, of those that would be removed. Yields nothing if the Node does not
 * exist. Idempotent. Throws `conflict` if the Node changed meanwhile.
 */
export async function* releaseNode(options: NodeReleaseOptions): AsyncGenerator<string, void> {
  const { client, nodeName, fieldManager, isDryRun, signal } = options;
  const node = await client.get(nodes, nodeName, { signal }).catch((error) => {
    if (codeOf(error) === "notFound") return undefined;
    throw error;
  });
  if (!node) return;
  const live = readNodeTaints(node, fieldManager);
  const merged = mergeNodeTaints(live, { desired: [], isComplete: true });
  if (merged && !isDryRun)
    await client.mergePatch(nodes, nodeName, taintPatch(node, merged.taints, merged.own), { signal });
  yield* [...live.own].sort().map((taint) => `spec.taints[${taint}]`);
  const { managedFields = [], uid } = node.metadata;
  if (managedFields.some(({ manager }) => manager === CONDITION_MANAGER)) {
    const body = { metadata: { name: nodeName, ...(uid ? { uid } : {}) } };
    const apply = { subresource: "status", force: true, fieldManager: CONDITION_MANAGER, signal };
    if (!isDryRun) await client.apply(nodes, body, apply);
    yield `status.conditions[${EVICTION_BLOCKED}]`;
  }
}

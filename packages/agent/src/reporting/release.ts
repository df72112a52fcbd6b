import type { ApiResource, KubeClient, KubeObject } from "@nodekeeper/core/kube";
import { codeOf } from "@nodekeeper/core/lib";
import { applyParts } from "./bodies.ts";
import type { PublishContext } from "./context.ts";
import type { KindPolicy } from "./kinds.ts";
import { kindKey, node } from "./kinds.ts";
import { appliedFields } from "./owned-values.ts";
import { RemoteObject } from "./remote-object.ts";
import { ownsTaintList } from "./taints.ts";
import { isOnlyOwn, pathsOf, publishedBefore } from "./unclaimed.ts";

export interface ReleaseOptions extends Pick<PublishContext, "nodeName" | "fieldManager"> {
  client: KubeClient;
  /** Whether to write nothing. */
  isDryRun: boolean;
  signal: AbortSignal;
}

/**
 * Removes all fields that the agent's field manager applied to a node's object of one kind, and deletes the object if
 * it has no other fields. Never deletes a Node, or an object that is already empty, because nothing proves that the
 * agent owns it. Fields and taints of other clients stay. Yields the removed paths after their removal; in a dry run,
 * the paths to remove. Yields nothing if the agent published nothing or the object does not exist. Idempotent, also
 * after an error. Throws `conflict` if the object changed meanwhile. The agent of the node must not run, because it
 * would restore its fields.
 */
export async function* releaseObject(
  resource: ApiResource,
  policy: KindPolicy,
  { client, nodeName, fieldManager, isDryRun, signal }: ReleaseOptions,
): AsyncGenerator<string, void> {
  const isNode = kindKey(resource) === kindKey(node);
  const isFrozenTaint = () => false;
  const remote = new RemoteObject(resource, isNode, { client, nodeName, fieldManager, isFrozenTaint });
  const live = await remote.read(signal);
  if (!live) return;
  const owner = { manager: fieldManager, isFrozen: isFrozenTaint };
  const published = publishedBefore(live, policy, owner);
  if (!isNode && isOnlyOwn(live, owner)) {
    // Deleted without removing its fields first. If the deletion of the empty object failed, nothing would prove at
    // the next attempt that the agent owns it.
    if (!isDryRun) await deleteUnchanged(client, resource, { live, signal });
    yield* pathsOf(published);
    yield "(the whole object)";
    return;
  }
  for (const part of applyParts) {
    if (!isDryRun && appliedFields(live, fieldManager, part)) {
      const ownsTaints = part === "main" && !isNode && ownsTaintList(live, fieldManager);
      await remote.apply({ part, fields: {}, ownsTaints }, signal);
    }
    const fields = published.fields.filter((field) => (field.part === "status") === (part === "status"));
    yield* pathsOf({ fields, problems: [] });
  }
}

async function deleteUnchanged(
  client: KubeClient,
  resource: ApiResource,
  { live, signal }: { live: KubeObject; signal: AbortSignal },
): Promise<void> {
  const { name = "", uid = "", resourceVersion = "" } = live.metadata;
  await client.delete(resource, name, { preconditions: { uid, resourceVersion }, signal }).catch((error) => {
    if (codeOf(error) !== "notFound") throw error;
  });
}

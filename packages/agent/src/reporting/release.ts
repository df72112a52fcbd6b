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
 * Removes from a node's object of one kind all fields that the agent's field manager applied, and deletes the object if
 * it has nothing else. Fields and taints of other clients stay, and so does an object that is empty already: nothing
 * proves whose it is. A Node is never deleted. Yields the paths of what was removed, once it is: none if the agent
 * published nothing, or if there is no such object. Idempotent, also after an error; throws `conflict` if the object
 * changed meanwhile. The agent of the node must not run, because it would restore its fields.
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
    // Not emptied first: if it could not be deleted then, nothing would prove the next time that it was the agent's.
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

import type { ApiResource, KubeClient } from "@nodekeeper/core/kube";
import { type ApplyPart, applyParts } from "./bodies.ts";
import type { PublishContext } from "./context.ts";
import type { KindPolicy } from "./kinds.ts";
import { kindKey, node } from "./kinds.ts";
import { appliedFields } from "./owned-values.ts";
import { RemoteObject } from "./remote-object.ts";
import { ownsTaintList } from "./taints.ts";
import { pathsOf, publishedBefore } from "./unclaimed.ts";

export interface ReleaseOptions extends Pick<PublishContext, "nodeName" | "fieldManager"> {
  client: KubeClient;
  /** Whether to write nothing. */
  isDryRun: boolean;
  signal: AbortSignal;
}

/**
 * Removes from a node's object of one kind all fields that the agent's field manager applied, and deletes the object if
 * nothing of any client is left in it. Fields and taints of other clients stay. A Node is never deleted. Returns the
 * paths of what the agent published: none if it published nothing, or if there is no such object. Idempotent; the agent
 * of the node must not run, because it would restore its fields.
 */
export async function releaseObject(
  resource: ApiResource,
  policy: KindPolicy,
  { client, nodeName, fieldManager, isDryRun, signal }: ReleaseOptions,
): Promise<string[]> {
  const isNode = kindKey(resource) === kindKey(node);
  const isFrozenTaint = () => false;
  const remote = new RemoteObject(resource, isNode, { client, nodeName, fieldManager, isFrozenTaint });
  const live = await remote.read(signal);
  if (!live) return [];
  const owner = { manager: fieldManager, isFrozen: isFrozenTaint };
  const released = pathsOf(publishedBefore(live, policy, owner));
  if (isDryRun) return released;
  let left = live;
  const owns = (part: ApplyPart) => appliedFields(left, fieldManager, part) !== undefined;
  for (const part of applyParts) {
    if (!owns(part)) continue;
    const ownsTaints = part === "main" && !isNode && ownsTaintList(left, fieldManager);
    left = await remote.apply({ part, fields: {}, ownsTaints }, signal);
  }
  const isEmptied = left !== live && (left.metadata.managedFields ?? []).length === 0;
  if (!isNode && isEmptied && !hasContent(left.spec) && !hasContent(left.status)) {
    const { uid = "", resourceVersion = "" } = left.metadata;
    await client.delete(resource, nodeName, { preconditions: { uid, resourceVersion }, signal });
    released.push("the object, which nobody else uses");
  }
  return released;
}

function hasContent(part: unknown): boolean {
  return typeof part === "object" && part !== null && Object.keys(part).length > 0;
}

import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import type { ResourceDefinition, Target } from "../catalogue/definition.ts";
import { at, keyOf, timestamp } from "../json.ts";
import { conflict } from "../status.ts";
import { findLive, subjectOf, type WriteContext } from "./context.ts";

/** The supported fields of `DeleteOptions`. */
export interface DeleteRequest {
  gracePeriodSeconds?: number;
  preconditions?: { uid?: string; resourceVersion?: string };
  propagationPolicy?: string;
  dryRun?: boolean;
}

/** The deleted object, and whether it was removed or waits for its grace period or finalizers. */
export interface DeleteResult {
  object: KubeObject;
  removed: boolean;
}

const DEFAULT_GRACE_SECONDS = 30;

type TerminatingMeta = ObjectMeta & { deletionGracePeriodSeconds?: number };

/** Handles DELETE. Foreground propagation is treated as background: dependents are deleted after their owner. */
export function deleteObject(
  context: WriteContext,
  target: Target,
  request: DeleteRequest = {},
): DeleteResult {
  const live = findLive(context, target);
  checkPreconditions(target, live, request);
  const grace = graceOf(target.definition, live, request.gracePeriodSeconds);
  if (grace > 0 || live.metadata.finalizers?.length)
    return markDeleted(context, target, live, grace, request.dryRun);
  if (request.dryRun) return { object: live, removed: true };
  return {
    object: removeNow(context, target.definition, live, request.propagationPolicy === "Orphan"),
    removed: true,
  };
}

function checkPreconditions(
  target: Target,
  { metadata }: KubeObject,
  { preconditions }: DeleteRequest,
): void {
  const { uid, resourceVersion } = preconditions ?? {};
  if (uid !== undefined && uid !== metadata.uid) {
    throw conflict(
      subjectOf(target),
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw conflict(
      subjectOf(target),
      `Precondition failed: ResourceVersion in precondition: ${resourceVersion}, ResourceVersion in object meta: ${metadata.resourceVersion}`,
    );
  }
}

// Only pods terminate gracefully. Pods without a node and terminated pods are removed immediately.
function graceOf(definition: ResourceDefinition, object: KubeObject, asked: number | undefined): number {
  if (!definition.eviction) return 0;
  const phase = at(object, "status", "phase");
  if (!at(object, "spec", "nodeName") || phase === "Succeeded" || phase === "Failed") return 0;
  const own = at(object, "spec", "terminationGracePeriodSeconds");
  return Math.max(asked ?? (typeof own === "number" ? own : DEFAULT_GRACE_SECONDS), 0);
}

function markDeleted(
  { store, clock }: WriteContext,
  { definition }: Target,
  live: KubeObject,
  grace: number,
  dryRun: boolean | undefined,
): DeleteResult {
  const before = live.metadata as TerminatingMeta;
  const sooner = grace < (before.deletionGracePeriodSeconds ?? 0);
  if (before.deletionTimestamp && !sooner) return { object: live, removed: false };
  const metadata: TerminatingMeta = {
    ...before,
    deletionTimestamp: timestamp(clock.now() + grace * 1000),
    deletionGracePeriodSeconds: grace,
    ...(before.generation ? { generation: before.generation + 1 } : {}),
  };
  const object = { ...live, metadata };
  return { object: dryRun ? object : store.put(definition.storage, object), removed: false };
}

/** Removes a terminating object if a write removed its last finalizer. */
export function finishDeletion(
  context: WriteContext,
  definition: ResourceDefinition,
  object: KubeObject,
): void {
  const {
    deletionTimestamp,
    deletionGracePeriodSeconds = 0,
    finalizers = [],
  } = object.metadata as TerminatingMeta;
  if (deletionTimestamp && deletionGracePeriodSeconds === 0 && finalizers.length === 0) {
    removeNow(context, definition, object, false);
  }
}

/** Removes an object immediately, including the objects in a namespace and dependents without another owner. */
export function removeNow(
  context: WriteContext,
  definition: ResourceDefinition,
  object: KubeObject,
  orphanDependents: boolean,
): KubeObject {
  if (definition.storage === "namespaces") emptyNamespace(context, object.metadata.name!);
  const removed = context.store.remove(definition.storage, keyOf(object)) ?? object;
  if (!orphanDependents && removed.metadata.uid) collectDependents(context, removed.metadata.uid);
  return removed;
}

function emptyNamespace(context: WriteContext, namespace: string): void {
  const { store, catalogue } = context;
  for (const definition of catalogue.all().filter(({ namespaced }) => namespaced)) {
    const objects = store.list(definition.storage).filter(({ metadata }) => metadata.namespace === namespace);
    for (const object of objects) removeNow(context, definition, object, true);
  }
}

function collectDependents(context: WriteContext, uid: string): void {
  const { store, catalogue } = context;
  for (const { storage, key } of store.dependentsOf(uid)) {
    const dependent = store.get(storage, key);
    const definition = catalogue.byStorage(storage);
    if (!dependent || !definition) continue;
    const owned = dependent.metadata.ownerReferences?.some(
      (owner) => owner.uid !== uid && store.locate(owner.uid),
    );
    if (owned) continue;
    const { namespace, name } = dependent.metadata;
    deleteObject(context, { definition, version: definition.versions[0]!, namespace, name });
  }
}

import type { KubeObject, ObjectMeta } from "@nodekeeper/core/kube";
import { encodeVersion, type Target } from "../catalogue/definition.ts";
import { applyConfiguration, recordUpdate } from "../fields/managed-fields.ts";
import { compact, objectKey, sameJson, without } from "../json.ts";
import { jsonPatch } from "../patches/json-patch.ts";
import { mergePatch } from "../patches/merge-patch.ts";
import { strategicPatch } from "../patches/strategic-patch.ts";
import { badRequest, conflict, invalid, notFound, unsupportedMediaType } from "../status.ts";
import { checkMetadata, checkWhole } from "./check-fields.ts";
import {
  findLive,
  subjectOf,
  type WriteContext,
  type WriteOptions,
  type WriteResult,
  writerFor,
} from "./context.ts";
import { createByApply } from "./create.ts";
import { finishDeletion } from "./delete.ts";
import { readBody } from "./read-body.ts";

export type PatchType = "merge" | "json" | "strategic";

/** Handles PUT: replaces the object. A resourceVersion in the body is a precondition. */
export function updateObject(
  context: WriteContext,
  target: Target,
  body: unknown,
  options: WriteOptions,
): WriteResult {
  const live = findLive(context, target);
  const desired = readBody(body, target, options);
  const { needsResourceVersion } = target.definition;
  if (needsResourceVersion && !desired.metadata.resourceVersion) {
    throw invalid(
      subjectOf(target),
      "metadata.resourceVersion",
      "Invalid value: 0: must be specified for an update",
    );
  }
  return replace(context, target, live, desired, options);
}

/** Handles PATCH for the three patch types that modify the current object. */
export function patchObject(
  context: WriteContext,
  target: Target,
  type: PatchType,
  patch: unknown,
  options: WriteOptions,
): WriteResult {
  const { definition, version } = target;
  if (type === "strategic" && definition.custom) {
    throw unsupportedMediaType([
      "application/json-patch+json",
      "application/merge-patch+json",
      "application/apply-patch+yaml",
    ]);
  }
  const live = findLive(context, target);
  const shown = encodeVersion(live, definition, version);
  const patched =
    type === "merge"
      ? mergePatch(shown, patch)
      : type === "json"
        ? jsonPatch(shown, patch)
        : strategicPatch(shown, patch, definition.mergeRules());
  return replace(context, target, live, readBody(patched, target, options), options);
}

/** Handles server-side apply. Creates the object if it does not exist. */
export function applyObject(
  context: WriteContext,
  target: Target,
  body: unknown,
  options: WriteOptions & { force: boolean },
): WriteResult {
  const configuration = configurationFor(target, readBody(body, target, options, true));
  if (configuration.metadata.managedFields) throw badRequest("metadata.managedFields must be nil");
  const live = context.store.get(target.definition.storage, objectKey(target.namespace, target.name!));
  if (!live) {
    if (target.subresource) throw notFound(subjectOf(target));
    return createByApply(context, target, configuration, options);
  }
  checkPreconditions(target, live, configuration.metadata);
  const writer = writerFor(context, target, "Apply", options.manager);
  const { uid: _uid, resourceVersion: _revision, ...metadata } = configuration.metadata;
  const plain = { ...configuration, metadata };
  const applied = applyConfiguration(live, plain, writer, target.definition.mergeRules(), options.force);
  const next = restoreServerFields(live, applied);
  checkWhole(next, target);
  return store(context, target, live, next, options.dryRun);
}

// A request for one part does not apply the other part, and therefore never owns it.
function configurationFor({ definition, subresource }: Target, configuration: KubeObject): KubeObject {
  if (!definition.status) return configuration;
  if (!subresource) return without(configuration, "status") as KubeObject;
  const { apiVersion, kind, metadata, status } = configuration;
  const {
    labels: _labels,
    annotations: _annotations,
    ownerReferences: _owners,
    finalizers: _finalizers,
    ...bare
  } = metadata;
  return compact({ apiVersion, kind, status, metadata: definition.statusWritesMetadata ? metadata : bare });
}

function replace(
  context: WriteContext,
  target: Target,
  live: KubeObject,
  desired: KubeObject,
  options: WriteOptions,
): WriteResult {
  checkPreconditions(target, live, desired.metadata);
  const { definition, subresource } = target;
  const limited = !definition.status
    ? desired
    : subresource
      ? statusOnly(target, live, desired)
      : specOnly(live, desired);
  const next = restoreServerFields(live, limited);
  const writer = writerFor(context, target, "Update", options.manager);
  return store(
    context,
    target,
    live,
    recordUpdate(live, next, writer, definition.mergeRules()),
    options.dryRun,
  );
}

function specOnly(live: KubeObject, desired: KubeObject): KubeObject {
  return compact({ ...desired, status: live.status });
}

function statusOnly({ definition }: Target, live: KubeObject, desired: KubeObject): KubeObject {
  const { managedFields } = desired.metadata;
  const metadata: ObjectMeta = definition.statusWritesMetadata
    ? {
        ...desired.metadata,
        ownerReferences: live.metadata.ownerReferences!,
        finalizers: live.metadata.finalizers!,
      }
    : { ...live.metadata, managedFields: managedFields! };
  return compact({ ...live, metadata: compact(metadata), status: desired.status });
}

function checkPreconditions(target: Target, live: KubeObject, { uid, resourceVersion }: ObjectMeta): void {
  if (uid && uid !== live.metadata.uid) {
    const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live.metadata.uid}`;
    throw conflict(subjectOf(target), why);
  }
  if (resourceVersion && resourceVersion !== live.metadata.resourceVersion) throw conflict(subjectOf(target));
}

// Restores fields that clients may send but not change.
function restoreServerFields(live: KubeObject, next: KubeObject): KubeObject {
  const { name, namespace, uid, creationTimestamp, generation, resourceVersion, deletionTimestamp } =
    live.metadata;
  const { deletionGracePeriodSeconds, generateName } = live.metadata as ObjectMeta & Record<string, unknown>;
  const metadata = compact({
    ...next.metadata,
    name,
    namespace,
    uid,
    creationTimestamp,
    generation,
    resourceVersion,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    generateName,
  }) as ObjectMeta;
  return { ...next, apiVersion: live.apiVersion!, kind: live.kind!, metadata };
}

function store(
  context: WriteContext,
  target: Target,
  live: KubeObject,
  next: KubeObject,
  dryRun: boolean,
): WriteResult {
  if (sameJson(live, next)) return { object: live, created: false };
  const { definition } = target;
  const counted = definition.generation && specChanged(live, next);
  const metadata = counted
    ? { ...next.metadata, generation: (live.metadata.generation ?? 0) + 1 }
    : next.metadata;
  const object = { ...next, metadata };
  checkMetadata(object, target);
  definition.validate?.(object, live);
  if (dryRun) return { object, created: false };
  const stored = context.store.put(definition.storage, object);
  finishDeletion(context, definition, stored);
  return { object: stored, created: false };
}

function specChanged(live: KubeObject, next: KubeObject): boolean {
  return !sameJson(without(live, "metadata", "status"), without(next, "metadata", "status"));
}

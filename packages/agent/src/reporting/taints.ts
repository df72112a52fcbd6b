import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { OWN_TAINTS } from "./kinds.ts";
import { appliedFields, hasField } from "./owned-values.ts";

/** Identifies the agent's taints. */
export interface TaintOwner {
  /** The agent's field manager. */
  manager: string;
  /** Whether a taint of the agent must not be changed. Frozen taints are neither removed nor published. */
  isFrozen: (taint: JsonObject) => boolean;
}

/** Returns the taints among an object's fields. */
export function taintsOf({ spec }: JsonObject): JsonObject[] {
  return isObject(spec) && Array.isArray(spec.taints) ? spec.taints.filter(isObject) : [];
}

/** Returns the taints of the live object that are proven to be the agent's, except frozen ones. */
export function ownTaints(live: KubeObject, { manager, isFrozen }: TaintOwner): JsonObject[] {
  const proven = provenTaints(live, manager);
  return taintsOf(live as unknown as JsonObject).filter(
    (taint) => proven.has(taintId(taint)) && !isFrozen(taint),
  );
}

/** Returns the frozen taints of the live object that are proven to be the agent's. */
export function frozenTaints(live: KubeObject, { manager, isFrozen }: TaintOwner): JsonObject[] {
  const frozen = taintsOf(live as unknown as JsonObject).filter(isFrozen);
  if (frozen.length === 0) return frozen;
  const proven = provenTaints(live, manager);
  return frozen.filter((taint) => proven.has(taintId(taint)));
}

/** Returns whether the agent owns the list of taints. If so, it must apply the taints of other clients too. */
export function ownsTaintList(live: KubeObject, manager: string): boolean {
  const spec = appliedFields(live, manager, "main")?.["f:spec"];
  return isObject(spec) && "f:taints" in spec;
}

/**
 * Adds to the body all taints of the live object that the agent must not change, and the annotation that lists the
 * agent's taints. The body includes the live resourceVersion, so that a taint added meanwhile is not lost.
 *
 * 1. Taints of other clients are not changed, even if plugins report the same ones. They are not listed in the
 *    annotation and remain when they are no longer reported.
 * 2. Frozen taints of the agent are not changed and remain listed.
 * @param now taints reported by plugins
 */
export function keepForeignTaints(
  body: KubeObject,
  live: KubeObject | undefined,
  now: readonly JsonObject[],
  { manager, isFrozen }: TaintOwner,
): void {
  const proven = live ? provenTaints(live, manager) : new Set();
  const reported = new Set(now.map(taintId));
  const isOwn = (taint: JsonObject) => proven.has(taintId(taint)) && !isFrozen(taint);
  const kept = taintsOf((live ?? {}) as unknown as JsonObject).filter((taint) => !isOwn(taint));
  const keptIds = new Set(kept.map(taintId));
  const added = now.filter((taint) => !keptIds.has(taintId(taint)));
  const taints = [...kept, ...added];
  const spec = isObject(body.spec as Json) ? (body.spec as JsonObject) : {};
  const { taints: _reported, ...others } = spec;
  // An empty list is omitted, so that the agent does not own it.
  if (taints.length > 0) body.spec = { ...others, taints };
  else if (reported.size > 0) body.spec = others;
  const own = [...[...keptIds].filter((id) => proven.has(id)), ...added.map(taintId)].sort();
  if (own.length > 0) {
    body.metadata.annotations = { ...body.metadata.annotations, [OWN_TAINTS]: JSON.stringify(own) };
  }
  if (live?.metadata.resourceVersion) body.metadata.resourceVersion = live.metadata.resourceVersion;
}

/**
 * Returns the IDs in the annotation of a live object. Empty unless managedFields prove that the agent wrote the
 * annotation, by apply or update.
 */
export function provenTaints(live: KubeObject, manager: string): ReadonlySet<string> {
  const isOwner = (entry: ManagedFieldsEntry) =>
    entry.manager === manager &&
    !entry.subresource &&
    hasField(entry, ["f:metadata", "f:annotations", FIELD]);
  return live.metadata.managedFields?.some(isOwner) ? listedTaints(live) : new Set();
}

/** Returns the IDs in the annotation of a live object, regardless of the client that wrote it. */
export function listedTaints({ metadata }: KubeObject): ReadonlySet<string> {
  try {
    const ids = JSON.parse(metadata.annotations?.[OWN_TAINTS] ?? "[]") as Json;
    return new Set(Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : []);
  } catch {
    return new Set();
  }
}

/**
 * Returns the managedFields entry of the client that last changed the list of taints. Undefined if it cannot be
 * determined.
 */
export function lastTaintWriter({ metadata }: KubeObject): ManagedFieldsEntry | undefined {
  const owners = (metadata.managedFields ?? []).filter((entry) => hasField(entry, ["f:spec", "f:taints"]));
  // If several managers own the list, it is unknown which of them changed it.
  return owners.length === 1 ? owners[0] : undefined;
}

const FIELD = `f:${OWN_TAINTS}`;

function taintId(taint: JsonObject): string {
  return `${taint.key}:${taint.effect}:${taint.qosLevel ?? ""}`;
}

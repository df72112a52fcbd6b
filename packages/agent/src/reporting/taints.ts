import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { OWN_TAINTS } from "./kinds.ts";
import { appliedFields } from "./owned-values.ts";

/** Identifies the taints of the agent. */
export interface TaintOwner {
  /** The agent's field manager. */
  manager: string;
  /** Whether a taint of the agent stays as it is: neither removed nor published by the agent. */
  isFrozen: (taint: JsonObject) => boolean;
}

/** The taints among an object's fields. */
export function taintsOf({ spec }: JsonObject): JsonObject[] {
  return isObject(spec) && Array.isArray(spec.taints) ? spec.taints.filter(isObject) : [];
}

/** The taints of the live object that are proven to be the agent's, without frozen ones. */
export function ownTaints(live: KubeObject, { manager, isFrozen }: TaintOwner): JsonObject[] {
  const proven = provenTaints(live, manager);
  return taintsOf(live as unknown as JsonObject).filter(
    (taint) => proven.has(taintId(taint)) && !isFrozen(taint),
  );
}

/** Whether the agent owns the list of taints, and therefore must apply the taints of other clients too. */
export function ownsTaintList(live: KubeObject, manager: string): boolean {
  const spec = appliedFields(live, manager, "main")?.["f:spec"];
  return isObject(spec) && "f:taints" in spec;
}

/**
 * Adds to the body all taints of the live object that the agent may not change, and the annotation that lists the
 * agent's. The live resourceVersion is included, so that a taint added in the meantime is not lost.
 *
 * 1. A taint of another client stays as it is, also if plugins report the same one: it is not listed in the annotation,
 *    and stays when it is no longer reported.
 * 2. A frozen taint of the agent stays as it is and remains listed.
 * @param now the taints reported by plugins
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
  // Without taints the list is omitted, so that the agent does not own an empty list.
  if (taints.length > 0) body.spec = { ...others, taints };
  else if (reported.size > 0) body.spec = others;
  const own = [...[...keptIds].filter((id) => proven.has(id)), ...added.map(taintId)].sort();
  if (own.length > 0) {
    body.metadata.annotations = { ...body.metadata.annotations, [OWN_TAINTS]: JSON.stringify(own) };
  }
  if (live?.metadata.resourceVersion) body.metadata.resourceVersion = live.metadata.resourceVersion;
}

/**
 * The ids of the taints that the annotation of a live object lists; none unless managedFields show that the annotation
 * is the agent's own, by an apply or an update.
 */
export function provenTaints(live: KubeObject, manager: string): ReadonlySet<string> {
  const isOwner = (entry: ManagedFieldsEntry) =>
    entry.manager === manager && !entry.subresource && hasField(entry, "f:metadata", "f:annotations", FIELD);
  return live.metadata.managedFields?.some(isOwner) ? listedTaints(live) : new Set();
}

/** The ids that the annotation of a live object lists, also if another client wrote it. */
export function listedTaints({ metadata }: KubeObject): ReadonlySet<string> {
  try {
    const ids = JSON.parse(metadata.annotations?.[OWN_TAINTS] ?? "[]") as Json;
    return new Set(Array.isArray(ids) ? ids.filter((id) => typeof id === "string") : []);
  } catch {
    return new Set();
  }
}

/** The managedFields entry of the client that changed the list of taints last; undefined if none shows it. */
export function lastTaintWriter({ metadata }: KubeObject): ManagedFieldsEntry | undefined {
  const owners = (metadata.managedFields ?? []).filter((entry) => hasField(entry, "f:spec", "f:taints"));
  // Owners that agree on the list are several: which of them changed it is not known.
  return owners.length === 1 ? owners[0] : undefined;
}

const FIELD = `f:${OWN_TAINTS}`;

function hasField({ fieldsV1 }: ManagedFieldsEntry, ...path: string[]): boolean {
  let fields: unknown = fieldsV1;
  for (const step of path) fields = isObject(fields as Json) ? (fields as JsonObject)[step] : undefined;
  return fields !== undefined;
}

function taintId(taint: JsonObject): string {
  return `${taint.key}:${taint.effect}:${taint.qosLevel ?? ""}`;
}

import type { NodeTaint } from "@nodekeeper/api/decide";
import type { KubeObject } from "@nodekeeper/core/kube";
import { OWN_TAINTS, provenTaints } from "../../reporting/index.ts";
import type { LiveTaint, LiveTaints } from "../parts.ts";

/** Returns a time in RFC 3339 with whole seconds, like `metav1.Time`. */
export function taintTime(since: number): string {
  return new Date(since).toISOString().replace(/\.\d+Z$/, "Z");
}

/** The agent's desired taints. They have no value. */
export interface DesiredNodeTaints {
  desired: readonly Omit<NodeTaint, "why">[];
  /** Whether to remove the agent's taints that are not desired. */
  isComplete: boolean;
}

/**
 * Returns the taints of a live Node. Pure.
 *
 * A taint is the agent's if the annotation `OWN_TAINTS` lists it, and managedFields show that the agent's field manager
 * wrote that annotation.
 */
export function readNodeTaints(node: KubeObject, manager: string): LiveTaints {
  const { taints } = (node.spec ?? {}) as { taints?: unknown };
  const live: LiveTaint[] = Array.isArray(taints) ? taints : [];
  const listed = provenTaints(node, manager);
  return { taints: live, own: new Set(live.map(idOf).filter((id) => listed.has(id))), listed };
}

/**
 * Returns the desired taints of a Node, and the sorted IDs of the agent's among them. Taints of other clients are
 * unchanged and keep their order. A value that another client set on one of the agent's taints is removed. Missing
 * taints are appended. A taint of another client that equals a desired one remains that client's. Undefined if nothing
 * needs to change. Pure.
 */
export function mergeNodeTaints(
  { taints: live, own, listed }: LiveTaints,
  { desired, isComplete }: DesiredNodeTaints,
): { taints: LiveTaint[]; own: string[] } | undefined {
  const desiredIds = new Set(desired.map(idOf));
  const liveIds = new Set(live.map(idOf));
  const isOwn = (taint: LiveTaint) => own.has(idOf(taint));
  const kept = live.filter((taint) => !isComplete || !isOwn(taint) || desiredIds.has(idOf(taint)));
  const hasForeignValue = (taint: LiveTaint) =>
    isOwn(taint) && desiredIds.has(idOf(taint)) && Boolean(taint.value);
  const missing = desired.filter((taint) => !liveIds.has(idOf(taint)));
  const nextOwn = [...new Set([...kept.filter(isOwn), ...missing].map(idOf))].sort();
  const isListed = nextOwn.length === listed.size && nextOwn.every((id) => listed.has(id));
  const isSame = missing.length === 0 && kept.length === live.length && !kept.some(hasForeignValue);
  if (isSame && isListed) return undefined;
  const taints = [
    ...kept.map((taint) => (hasForeignValue(taint) ? withoutValue(taint) : taint)),
    ...missing.map(({ key, effect, since }) => ({ key, effect, timeAdded: taintTime(since) })),
  ];
  return { taints, own: nextOwn };
}

/**
 * Returns the merge patch that writes a Node's taints and the annotation that lists the agent's, in one request so that
 * neither is written without the other. The resourceVersion and the UID of the Node that was read are preconditions.
 */
export function taintPatch({ metadata }: KubeObject, taints: readonly LiveTaint[], own: readonly string[]) {
  const { resourceVersion, uid, annotations: live } = metadata;
  const isAnnotated = live?.[OWN_TAINTS] !== undefined;
  const annotations = { [OWN_TAINTS]: own.length > 0 ? JSON.stringify(own) : null };
  const hasChange = own.length > 0 || isAnnotated;
  return { metadata: { resourceVersion, uid, ...(hasChange ? { annotations } : {}) }, spec: { taints } };
}

/** Returns the taints in `after` that are not in `before`, as "key:effect". */
export function newTaints(before: readonly LiveTaint[], after: readonly LiveTaint[]): string[] {
  const known = new Set(before.map(idOf));
  return after.map(idOf).filter((id) => !known.has(id));
}

/** Returns the taints in both lists whose value differs, as "key:effect". */
export function changedTaints(before: readonly LiveTaint[], after: readonly LiveTaint[]): string[] {
  const values = new Map(before.map((taint) => [idOf(taint), taint.value]));
  return after
    .filter((taint) => values.has(idOf(taint)) && (taint.value ?? "") !== (values.get(idOf(taint)) ?? ""))
    .map(idOf);
}

/** Returns the taints that have a value, as "key:effect". */
export function valuedTaints(taints: readonly LiveTaint[]): string[] {
  return taints.filter(({ value }) => Boolean(value)).map(idOf);
}

function withoutValue({ value: _value, ...taint }: LiveTaint): LiveTaint {
  return taint;
}

// Kubernetes identifies taints by key and effect.
function idOf({ key, effect }: Pick<LiveTaint, "key" | "effect">): string {
  return `${key}:${effect}`;
}

import type { KubeObject } from "@nodekeeper/core/kube";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { OWN_TAINTS } from "./kinds.ts";
import { appliedFields } from "./owned-values.ts";

/** Identifies the taints managed by the agent. */
export interface TaintOwner {
  /** The agent's field manager. */
  manager: string;
  /** Key prefixes of taints managed by the agent. */
  managedPrefixes: readonly string[];
}

/** The taints among an object's fields. */
export function taintsOf({ spec }: JsonObject): JsonObject[] {
  return isObject(spec) && Array.isArray(spec.taints) ? spec.taints.filter(isObject) : [];
}

/** The taints of the live object that are known to be the agent's. */
export function ownTaints(live: KubeObject, owner: TaintOwner): JsonObject[] {
  const isOwn = ownership(live, owner);
  return taintsOf(live as unknown as JsonObject).filter(isOwn);
}

/** Whether the agent owns the list of taints, and therefore must apply the taints of other clients too. */
export function ownsTaintList(live: KubeObject, manager: string): boolean {
  const spec = appliedFields(live, manager, "main")?.["f:spec"];
  return isObject(spec) && "f:taints" in spec;
}

/**
 * Adds to the body all taints of the live object that are not known to be the agent's, and the annotation that lists the
 * agent's. The live resourceVersion is included, so that a taint added in the meantime is not lost.
 * @param now the taints reported by plugins
 */
export function keepForeignTaints(
  body: KubeObject,
  live: KubeObject | undefined,
  now: readonly JsonObject[],
  owner: TaintOwner,
): void {
  const isOwn = live ? ownership(live, owner) : () => false;
  const reported = new Set(now.map(taintId));
  const foreign = taintsOf((live ?? {}) as unknown as JsonObject).filter(
    (taint) => !reported.has(taintId(taint)) && !isOwn(taint),
  );
  const taints = [...foreign, ...now];
  const spec = isObject(body.spec as Json) ? (body.spec as JsonObject) : {};
  // Without taints the list is omitted, so that the agent does not own an empty list.
  if (taints.length > 0) body.spec = { ...spec, taints };
  if (now.length > 0) {
    const annotations = { ...body.metadata.annotations, [OWN_TAINTS]: JSON.stringify([...reported].sort()) };
    body.metadata.annotations = annotations;
  }
  if (live?.metadata.resourceVersion) body.metadata.resourceVersion = live.metadata.resourceVersion;
}

function ownership(
  live: KubeObject,
  { manager, managedPrefixes }: TaintOwner,
): (taint: JsonObject) => boolean {
  const proven = provenIds(live, manager);
  return (taint) =>
    proven.has(taintId(taint)) || managedPrefixes.some((prefix) => String(taint.key).startsWith(prefix));
}

// The annotation is trusted only while the agent's field manager owns it.
function provenIds(live: KubeObject, manager: string): ReadonlySet<unknown> {
  const metadata = appliedFields(live, manager, "main")?.["f:metadata"];
  const owned = isObject(metadata) ? metadata["f:annotations"] : undefined;
  if (!isObject(owned) || !(`f:${OWN_TAINTS}` in owned)) return new Set();
  try {
    const ids = JSON.parse(live.metadata.annotations?.[OWN_TAINTS] ?? "[]") as Json;
    return new Set(Array.isArray(ids) ? ids : []);
  } catch {
    return new Set();
  }
}

function taintId(taint: JsonObject): string {
  return `${taint.key}:${taint.effect}:${taint.qosLevel ?? ""}`;
}

import type { KubeObject } from "@nodekeeper/core/kube";
import { isObject, type Json, type JsonObject } from "./json.ts";
import { OWN_TAINTS } from "./kinds.ts";
import { appliedFields } from "./owned-values.ts";

/** What tells the agent's own taints from others'. */
export interface TaintOwner {
  /** The field manager. */
  manager: string;
  /** Taints with these prefixes of their key are the agent's. */
  managedPrefixes: readonly string[];
}

/** The taints among an object's fields. */
export function taintsOf({ spec }: JsonObject): JsonObject[] {
  return isObject(spec) && Array.isArray(spec.taints) ? spec.taints.filter(isObject) : [];
}

/** The taints of the live object that are provably the agent's. */
export function ownTaints(live: KubeObject, owner: TaintOwner): JsonObject[] {
  const isOwn = ownership(live, owner);
  return taintsOf(live as unknown as JsonObject).filter(isOwn);
}

/** Whether the agent owns the list, that is, is the only one who keeps the taints in it, others' included. */
export function ownsTaintList(live: KubeObject, manager: string): boolean {
  const spec = appliedFields(live, manager, "main")?.["f:spec"];
  return isObject(spec) && "f:taints" in spec;
}

/**
 * Adds to the body all taints of the live object that are not provably the agent's, and the annotation that proves the
 * others. The live resourceVersion is sent along, so that a taint added meanwhile is not lost.
 * @param now the taints that plugins report
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
  // With none left, the list is given up rather than owned empty.
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

// Another client that writes the annotation owns it from then on, and it proves nothing.
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

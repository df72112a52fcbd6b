import { apiVersionOf, type KubeObject, type ManagedFieldsEntry } from "../kube/index.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";
import type { MergedObject } from "./merge.ts";

/** What is applied apart: spec and metadata to the object itself, status to its subresource. */
export type ApplyPart = "main" | "status";
export const applyParts: readonly ApplyPart[] = ["main", "status"];

/** What the agent wants to own of one part, as text that is equal when the wish is. Empty: nothing. */
export function desiredText(merged: MergedObject | undefined, part: ApplyPart): string {
  if (!merged) return "";
  const { spec, status, metadata } = merged.parts;
  if (part === "status") return isEmpty(status) ? "" : JSON.stringify({ status });
  const wish: JsonObject = {};
  if (!isEmpty(metadata)) wish.metadata = metadata;
  if (!isEmpty(spec)) wish.spec = spec;
  return isEmpty(wish) ? "" : JSON.stringify(wish);
}

/** The body of a server-side apply that makes the server hold what `text` (of `desiredText`) says, and no more. */
export function applyBody(
  kind: MergedObject["kind"],
  text: string,
  identity: { name: string; uid?: string },
): KubeObject {
  const wish: JsonObject = text === "" ? {} : JSON.parse(text);
  const metadata = isObject(wish.metadata) ? wish.metadata : {};
  return { ...wish, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { ...metadata, ...identity } };
}

/** Whether the part has a list of taints, which the API treats as one value with one owner. */
export function taintsIn(text: string): JsonObject[] {
  if (!text.includes('"taints"')) return [];
  const { spec } = JSON.parse(text) as JsonObject;
  return isObject(spec) && Array.isArray(spec.taints) ? spec.taints.filter(isObject) : [];
}

/**
 * Adds to the body's taints those of the live object that are not the agent's: neither under a managed prefix,
 * nor applied by it before. The live resourceVersion goes along, so that a taint added meanwhile is not lost.
 */
export function keepForeignTaints(
  body: KubeObject,
  live: KubeObject,
  own: { now: readonly JsonObject[]; before: readonly JsonObject[]; managedPrefixes: readonly string[] },
): void {
  const ownIds = new Set([...own.now, ...own.before].map(taintId));
  const liveSpec = live.spec as Json | undefined;
  const liveTaints =
    isObject(liveSpec) && Array.isArray(liveSpec.taints) ? liveSpec.taints.filter(isObject) : [];
  const foreign = liveTaints.filter(
    (taint) =>
      !ownIds.has(taintId(taint)) &&
      !own.managedPrefixes.some((prefix) => String(taint.key).startsWith(prefix)),
  );
  const taints = [...foreign, ...own.now];
  const spec = isObject(body.spec as Json) ? (body.spec as JsonObject) : {};
  // With none left, the list is given up rather than owned empty.
  if (taints.length > 0) body.spec = { ...spec, taints };
  if (live.metadata.resourceVersion) body.metadata.resourceVersion = live.metadata.resourceVersion;
}

function taintId(taint: JsonObject): string {
  return `${taint.key}/${taint.effect}/${taint.qosLevel ?? ""}`;
}

/** The field set a manager owns in one part of an object as the server stores it; empty where it owns nothing. */
export function ownedFields(object: KubeObject, manager: string, part: ApplyPart): string {
  const subresource = part === "status" ? "status" : undefined;
  const isOurs = (entry: ManagedFieldsEntry) =>
    entry.manager === manager &&
    entry.operation === "Apply" &&
    (entry.subresource || undefined) === subresource;
  const entry = object.metadata.managedFields?.find(isOurs);
  return entry ? JSON.stringify(entry.fieldsV1 ?? {}) : "";
}

function isEmpty(object: JsonObject): boolean {
  return Object.keys(object).length === 0;
}

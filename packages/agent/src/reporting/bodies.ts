import { apiVersionOf, type KubeObject } from "@nodekeeper/core/kube";
import { isObject, type JsonObject } from "./json.ts";
import type { MergedObject } from "./merge.ts";

/** What is applied apart: spec and metadata to the object itself, status to its subresource. */
export type ApplyPart = "main" | "status";
export const applyParts: readonly ApplyPart[] = ["main", "status"];

/** What the agent is to own of one part. */
export interface Desired {
  /** The fields, in the shape of the object. Never changed. */
  fields: JsonObject;
  /** Equal when the fields are; empty where there are none. */
  text: string;
}

/** What plugins report of one part. */
export function desiredOf(merged: MergedObject | undefined, part: ApplyPart): Desired {
  const fields: JsonObject = {};
  const { spec, status, metadata } = merged?.parts ?? { spec: {}, status: {}, metadata: {} };
  if (part === "status") {
    if (!isEmpty(status)) fields.status = status;
  } else {
    if (!isEmpty(metadata)) fields.metadata = metadata;
    if (!isEmpty(spec)) fields.spec = spec;
  }
  return { fields, text: isEmpty(fields) ? "" : JSON.stringify(fields) };
}

/** The body of a server-side apply that makes the server hold these fields, and no more of the agent's. */
export function applyBody(
  kind: MergedObject["kind"],
  fields: JsonObject,
  identity: { name: string; uid?: string },
): KubeObject {
  const metadata = isObject(fields.metadata) ? fields.metadata : {};
  return {
    ...fields,
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    metadata: { ...metadata, ...identity },
  };
}

function isEmpty(object: JsonObject): boolean {
  return Object.keys(object).length === 0;
}

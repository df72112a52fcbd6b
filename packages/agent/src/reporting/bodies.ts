import { apiVersionOf, type KubeObject } from "@nodekeeper/core/kube";
import { isObject, type JsonObject } from "./json.ts";
import type { MergedObject } from "./merge.ts";

/** An object is applied in two parts: `main` is metadata and spec, `status` is the status subresource. */
export type ApplyPart = "main" | "status";
export const applyParts: readonly ApplyPart[] = ["main", "status"];

/** Desired content of one part, owned by the agent's field manager. */
export interface Desired {
  /** Fields in the shape of the object. Immutable. */
  fields: JsonObject;
  /** Serialized fields. Equal if the fields are equal; empty if there are none. */
  text: string;
}

/** Returns the desired content of one part of the merged reports. */
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

/** Returns the body of a server-side apply after which the agent's field manager owns exactly these fields. */
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

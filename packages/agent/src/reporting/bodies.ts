import { apiVersionOf, type KubeObject } from "@nodekeeper/core/kube";
import { isObject, type JsonObject } from "./json.ts";
import type { MergedObject } from "./merge.ts";

/** An object is applied in two parts: `main` is spec and metadata, `status` is the status subresource. */
export type ApplyPart = "main" | "status";
export const applyParts: readonly ApplyPart[] = ["main", "status"];

/** The desired content of one part, which the agent owns on the server. */
export interface Desired {
  /** The fields, in the shape of the object. Immutable. */
  fields: JsonObject;
  /** Serialized fields: equal if the fields are equal, empty if there are none. */
  text: string;
}

/** The desired content of one part, from the merged reports. */
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

/** Body of a server-side apply after which the agent's field manager owns exactly these fields. */
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

import type { KubeObject } from "@nodekeeper/core/kube";
import { isTree, type Tree, without } from "../json.ts";
import { compareObjects } from "./compare.ts";
import { difference, emptySet, type FieldSet } from "./field-set.ts";
import { fieldsOf } from "./fields-of.ts";
import type { FieldSchema } from "./schema.ts";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * The fields that `kubectl apply` on the client set and no manager changed since. The API server lets `kubectl` take
 * them over with server-side apply without a conflict, so that people can move from one to the other.
 */
export function fieldsLastAppliedByKubectl(
  live: KubeObject,
  manager: string,
  schema: FieldSchema | undefined,
): FieldSet {
  const text = live.metadata.annotations?.[ANNOTATION];
  const applied = manager === "kubectl" && text ? parse(text) : undefined;
  if (!applied) return emptySet;
  const configuration = without(applied, "apiVersion", "kind");
  const { modified } = compareObjects(live, configuration, schema);
  return difference(fieldsOf(configuration, schema), modified);
}

function parse(text: string): Tree | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isTree(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

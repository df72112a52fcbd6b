import type { KubeObject } from "@nodekeeper/core/kube";
import { isTree, type Tree, without } from "../json.ts";
import { compareObjects } from "./compare.ts";
import { difference, emptySet, type FieldSet } from "./field-set.ts";
import { fieldsOf } from "./fields-of.ts";
import type { FieldSchema } from "./schema.ts";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Returns the fields that client-side `kubectl apply` set and no manager has changed since. The API server lets
 * `kubectl` take them over by server-side apply without a conflict, to support migration.
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

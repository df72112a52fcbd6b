import { atomic, type FieldSchema, listBy, map, set } from "../fields/schema.ts";
import { at, isTree, type Tree } from "../json.ts";
// Schemas of kube-apiserver, reduced by test/e2e/support/kube-schemas.ts. test/e2e/device-rules.e2e.test.ts compares
// and updates them.
import schemas from "./kubernetes-schemas.json" with { type: "json" };

const named: Tree = schemas;

/** Schema of object metadata. */
export const metadataRef: Tree = { $ref: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" };

/** Schema of objects of an unknown kind. */
export const objectSchema: Tree = { type: "object", properties: { metadata: metadataRef } };

/**
 * Returns the schema that Kubernetes publishes under a name, such as "io.k8s.api.core.v1.Pod". Throws if it is unknown.
 */
export function schemaNamed(name: string): Tree {
  const schema = named[name];
  if (!isTree(schema)) throw new Error(`no schema ${name}`);
  return schema;
}

/** Returns the schema. Resolves a reference and merges the schema's own fields into it. */
export function resolved(schema: Tree): Tree {
  const { $ref: name, ...own } = schema;
  return typeof name === "string" ? { ...schemaNamed(name), ...own } : schema;
}

/**
 * Returns the merge rules of a schema, computed on first use: those of a pod take milliseconds, and most test servers
 * do not serve pods.
 */
export function mergeRulesOnDemand(schema: unknown): () => FieldSchema {
  let rules: FieldSchema | undefined;
  return () => {
    rules ??= mergeRulesOf(schema) ?? { type: "map" };
    return rules;
  };
}

/**
 * Computes the merge rules of a schema from x-kubernetes-list-type and related extensions. Levels without rules are
 * omitted, because they equal the default: granular maps and lists that are replaced. A recursive reference has no
 * rules.
 */
function mergeRulesOf(given: unknown, above: readonly string[] = []): FieldSchema | undefined {
  if (!isTree(given)) return undefined;
  const name = typeof given.$ref === "string" ? given.$ref : undefined;
  if (name !== undefined && above.includes(name)) return undefined;
  const within = name === undefined ? above : [...above, name];
  const schema = resolved(given);
  if (schema["x-kubernetes-map-type"] === "atomic") return atomic;
  const listType = schema["x-kubernetes-list-type"];
  if (listType === "set") return set;
  if (listType === "map" && Array.isArray(schema["x-kubernetes-list-map-keys"])) {
    return listBy(
      schema["x-kubernetes-list-map-keys"] as string[],
      mergeRulesOf(schema.items, within),
      defaultsOf(schema.items),
    );
  }
  const values = mergeRulesOf(schema.additionalProperties, within);
  const fields: Record<string, FieldSchema> = {};
  for (const [field, child] of Object.entries(isTree(schema.properties) ? schema.properties : {})) {
    const below = mergeRulesOf(child, within);
    if (below) fields[field] = below;
  }
  return values || Object.keys(fields).length > 0 ? map(fields, values) : undefined;
}

function defaultsOf(items: unknown): Record<string, unknown> | undefined {
  const properties = isTree(items) ? at(resolved(items), "properties") : undefined;
  const entries = Object.entries(isTree(properties) ? properties : {})
    .map(([field, schema]) => [field, at(schema, "default")] as const)
    .filter(([, value]) => value !== undefined);
  return entries.length > 0 ? Object.fromEntries(entries) : undefined;
}

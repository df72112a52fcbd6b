import { isTree } from "../json.ts";

/**
 * Merge rules of a field. Without a schema, maps are granular and lists are replaced, as the API server treats unknown
 * types. Source: x-kubernetes-list-type and related extensions, and the documentation of structured-merge-diff.
 */
export type FieldSchema =
  | {
      readonly type: "map";
      readonly fields?: Readonly<Record<string, FieldSchema>>;
      readonly values?: FieldSchema;
    }
  | { readonly type: "atomic" }
  | {
      readonly type: "list";
      /** Fields that identify an item. */
      readonly keys: readonly string[];
      /** Default values of key fields that may be absent. */
      readonly defaults?: Readonly<Record<string, unknown>>;
      readonly items?: FieldSchema;
    }
  | { readonly type: "set" };

export const atomic: FieldSchema = { type: "atomic" };
export const set: FieldSchema = { type: "set" };

export function map(fields: Readonly<Record<string, FieldSchema>>, values?: FieldSchema): FieldSchema {
  return { type: "map", fields, ...(values ? { values } : {}) };
}

/** Returns the schema of a list whose items are identified by fields. */
export function listBy(
  keys: string | readonly string[],
  items?: FieldSchema,
  defaults?: Record<string, unknown>,
): FieldSchema {
  return {
    type: "list",
    keys: typeof keys === "string" ? [keys] : keys,
    ...(items ? { items } : {}),
    ...(defaults ? { defaults } : {}),
  };
}

/** Returns the schema of a map's field. */
export function fieldSchema(schema: FieldSchema | undefined, field: string): FieldSchema | undefined {
  if (schema?.type !== "map") return undefined;
  const known = schema.fields && Object.hasOwn(schema.fields, field) ? schema.fields[field] : undefined;
  return known ?? schema.values;
}

/** Returns the schema of an associative list's items. */
export function itemSchema(schema: FieldSchema | undefined): FieldSchema | undefined {
  return schema?.type === "list" ? schema.items : undefined;
}

/** Returns whether the value is a map whose fields are owned individually. */
export function isGranular(
  value: unknown,
  schema: FieldSchema | undefined,
): value is Readonly<Record<string, unknown>> {
  return isTree(value) && schema?.type !== "atomic";
}

/**
 * Returns the items of an associative list or set by path element (`k:{"type":"Ready"}`, `v:"x"`), in order. Undefined
 * for other values. Missing key fields without a default are left out.
 */
export function itemsByElement(
  value: unknown,
  schema: FieldSchema | undefined,
): Map<string, unknown> | undefined {
  if (!Array.isArray(value) || (schema?.type !== "list" && schema?.type !== "set")) return undefined;
  const items = new Map<string, unknown>();
  for (const item of value) items.set(itemElement(item, schema), item);
  return items;
}

function itemElement(item: unknown, schema: FieldSchema): string {
  if (schema.type !== "list") return `v:${JSON.stringify(item)}`;
  const key: Record<string, unknown> = {};
  for (const field of [...schema.keys].sort()) {
    const value = (isTree(item) ? item[field] : undefined) ?? schema.defaults?.[field];
    if (value !== undefined) key[field] = value;
  }
  return `k:${JSON.stringify(key)}`;
}

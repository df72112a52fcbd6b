import { isTree, type Tree } from "../json.ts";
import { emptySet, type FieldSet, nodeOf } from "./field-set.ts";
import { type FieldSchema, fieldSchema, isGranular, itemSchema, itemsByElement } from "./schema.ts";

/** Returns the paths of an applied configuration: its leaves and the items of associative lists. */
export function fieldsOf(configuration: Tree, schema: FieldSchema | undefined): FieldSet {
  return mapChildren(configuration, schema, false);
}

/**
 * Returns all paths at and below a value, including the value's own path and its maps, as for added or removed fields.
 */
export function allFieldsOf(value: unknown, schema: FieldSchema | undefined): FieldSet {
  return valueNode(value, schema, true);
}

function valueNode(value: unknown, schema: FieldSchema | undefined, mapsAreMembers: boolean): FieldSet {
  if (isGranular(value, schema)) {
    return nodeOf(mapsAreMembers, mapChildren(value, schema, mapsAreMembers)) ?? emptySet;
  }
  const items = itemsByElement(value, schema);
  if (!items) return emptySet;
  const children: Record<string, FieldSet> = {};
  for (const [element, item] of items) {
    const below = isTree(item) ? mapChildren(item, itemSchema(schema), mapsAreMembers) : emptySet;
    children[element] = nodeOf(true, below)!;
  }
  return nodeOf(mapsAreMembers, children) ?? emptySet;
}

function mapChildren(value: Tree, schema: FieldSchema | undefined, mapsAreMembers: boolean): FieldSet {
  const children: Record<string, FieldSet> = {};
  for (const field of Object.keys(value)) {
    children[`f:${field}`] = valueNode(value[field], fieldSchema(schema, field), mapsAreMembers);
  }
  return children;
}

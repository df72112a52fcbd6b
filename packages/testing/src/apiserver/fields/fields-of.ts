import { isTree, type Tree } from "../json.ts";
import { emptySet, type FieldSet, nodeOf } from "./field-set.ts";
import { type FieldSchema, fieldSchema, isGranular, itemSchema, itemsByElement } from "./schema.ts";

/** The paths that an applied configuration names: its leaves, and the items of associative lists. */
export function fieldsOf(configuration: Tree, schema: FieldSchema | undefined): FieldSet {
  return mapChildren(configuration, schema, false);
}

/** All paths at and below a value; the value's own path and its maps are members too, as for fields that appear or go. */
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

import { isTree, own, sameJson, type Tree } from "../json.ts";
import { emptySet, type FieldSet, nodeOf } from "./field-set.ts";
import { allFieldsOf } from "./fields-of.ts";
import { type FieldSchema, fieldSchema, isGranular, itemSchema, itemsByElement } from "./schema.ts";

/** Differences between two versions of an object, as sets of paths. */
export interface Comparison {
  added: FieldSet;
  modified: FieldSet;
  removed: FieldSet;
}

interface NodeComparison {
  added?: FieldSet | undefined;
  modified?: FieldSet | undefined;
  removed?: FieldSet | undefined;
}

const nothing: NodeComparison = {};

/** Compares two objects. An absent top-level map counts as empty, so that `spec` itself is never added or removed. */
export function compareObjects(before: Tree, after: Tree, schema: FieldSchema | undefined): Comparison {
  const collector = new Collector();
  for (const field of fieldsOfBoth(before, after)) {
    let left = own(before, field);
    let right = own(after, field);
    if (left === undefined && isTree(right)) left = {};
    if (right === undefined && isTree(left)) right = {};
    collector.add(`f:${field}`, compareValues(left, right, fieldSchema(schema, field)));
  }
  const { added = {}, modified = {}, removed = {} } = collector;
  return { added, modified, removed };
}

function compareValues(before: unknown, after: unknown, schema: FieldSchema | undefined): NodeComparison {
  if (before === after) return nothing;
  if (before === undefined) return { added: allFieldsOf(after, schema) };
  if (after === undefined) return { removed: allFieldsOf(before, schema) };
  if (isGranular(before, schema) && isGranular(after, schema)) return compareMaps(before, after, schema);
  const itemsBefore = itemsByElement(before, schema);
  const itemsAfter = itemsByElement(after, schema);
  if (itemsBefore && itemsAfter) return compareItems(itemsBefore, itemsAfter, schema);
  if (sameJson(before, after)) return nothing;
  if (isTree(before) === isTree(after)) return { modified: emptySet };
  return { removed: allFieldsOf(before, schema), added: allFieldsOf(after, schema), modified: emptySet };
}

function compareMaps(before: Tree, after: Tree, schema: FieldSchema | undefined): NodeComparison {
  const collector = new Collector();
  for (const field of fieldsOfBoth(before, after)) {
    collector.add(
      `f:${field}`,
      compareValues(own(before, field), own(after, field), fieldSchema(schema, field)),
    );
  }
  return collector.node();
}

function compareItems(
  before: Map<string, unknown>,
  after: Map<string, unknown>,
  schema: FieldSchema | undefined,
): NodeComparison {
  const collector = new Collector();
  const items = itemSchema(schema);
  for (const element of new Set([...before.keys(), ...after.keys()])) {
    const comparison = compareValues(before.get(element), after.get(element), items);
    collector.add(element, comparison);
  }
  return collector.node();
}

function fieldsOfBoth(before: Tree, after: Tree): string[] {
  const fields = Object.keys(before);
  for (const field of Object.keys(after)) if (!Object.hasOwn(before, field)) fields.push(field);
  return fields;
}

class Collector {
  added: Record<string, FieldSet> | undefined;
  modified: Record<string, FieldSet> | undefined;
  removed: Record<string, FieldSet> | undefined;

  add(element: string, { added, modified, removed }: NodeComparison): void {
    if (added) {
      this.added ??= {};
      this.added[element] = added;
    }
    if (modified) {
      this.modified ??= {};
      this.modified[element] = modified;
    }
    if (removed) {
      this.removed ??= {};
      this.removed[element] = removed;
    }
  }

  node(): NodeComparison {
    return {
      added: this.added && nodeOf(false, this.added),
      modified: this.modified && nodeOf(false, this.modified),
      removed: this.removed && nodeOf(false, this.removed),
    };
  }
}

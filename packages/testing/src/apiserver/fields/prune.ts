import { isTree, type MutableTree, own, setOwn, type Tree } from "../json.ts";
import { child, elements, emptySet, type FieldSet, isEmpty, isMember } from "./field-set.ts";
import { type FieldSchema, fieldSchema, isGranular, itemSchema, itemsByElement } from "./schema.ts";

/**
 * Removes fields that a manager applied previously and no manager owns now. `managed` is the union of all managers'
 * sets, including the new set of the applying manager. Returns the same object if nothing is removed.
 */
export function prune<T extends Tree>(
  object: T,
  last: FieldSet,
  managed: FieldSet,
  schema: FieldSchema | undefined,
): T {
  return pruneMap(object, last, managed, schema) as T;
}

function pruneMap(map: Tree, last: FieldSet, managed: FieldSet, schema: FieldSchema | undefined): Tree {
  let pruned: MutableTree | undefined;
  for (const element of elements(last)) {
    const field = element.slice(2);
    const value = own(map, field);
    if (value === undefined) continue;
    const kept = pruneField(value, last[element]!, child(managed, element), fieldSchema(schema, field));
    if (kept === value) continue;
    pruned ??= { ...map };
    if (kept === undefined) delete pruned[field];
    else setOwn(pruned, field, kept);
  }
  return pruned ?? map;
}

// A field remains while a manager owns it or one of its descendants, and a map while it has members that the manager
// did not apply: structured-merge-diff merge/update.go, addBackDanglingItems.
function pruneField(
  value: unknown,
  last: FieldSet,
  managed: FieldSet | undefined,
  schema: FieldSchema | undefined,
): unknown {
  const isWithdrawn = !managed && isMember(last);
  if (isWithdrawn && !isGranular(value, schema)) return undefined;
  const kept = pruneBelow(value, last, managed ?? emptySet, schema);
  const emptied = (kept !== value || isWithdrawn) && !managed && isHollow(kept);
  return emptied ? undefined : kept;
}

function pruneBelow(
  value: unknown,
  last: FieldSet,
  managed: FieldSet,
  schema: FieldSchema | undefined,
): unknown {
  if (isEmpty(last)) return value;
  if (isGranular(value, schema)) return pruneMap(value, last, managed, schema);
  const items = itemsByElement(value, schema);
  return items ? pruneItems(value, items, last, managed, schema) : value;
}

// An item is removed if no manager owns the item itself, because the remainder would have no key.
function pruneItems(
  list: unknown,
  items: Map<string, unknown>,
  last: FieldSet,
  managed: FieldSet,
  schema: FieldSchema | undefined,
): unknown {
  const kept: unknown[] = [];
  let changed = false;
  for (const [element, item] of items) {
    const lastItem = child(last, element);
    const managedItem = child(managed, element);
    if (isMember(lastItem) && !isMember(managedItem)) {
      changed = true;
      continue;
    }
    const below =
      lastItem && isTree(item) ? pruneMap(item, lastItem, managedItem ?? emptySet, itemSchema(schema)) : item;
    const whole = below === item ? item : withKeys(below as Tree, item as Tree, schema);
    changed ||= whole !== item;
    kept.push(whole);
  }
  return changed ? kept : list;
}

function withKeys(pruned: Tree, original: Tree, schema: FieldSchema | undefined): Tree {
  if (schema?.type !== "list") return pruned;
  const keys: MutableTree = {};
  for (const key of schema.keys) if (original[key] !== undefined) keys[key] = original[key];
  return { ...pruned, ...keys };
}

function isHollow(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isTree(value) && Object.keys(value).length === 0;
}

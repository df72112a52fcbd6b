import { type MutableTree, own, setOwn, type Tree } from "../json.ts";
import { type FieldSchema, fieldSchema, isGranular, itemSchema, itemsByElement } from "./schema.ts";

/**
 * Merges an applied configuration into an object: maps by field, associative lists by key. Other values are replaced.
 */
export function mergeObjects<T extends Tree>(
  live: T,
  configuration: Tree,
  schema: FieldSchema | undefined,
): T {
  return mergeMaps(live, configuration, schema) as T;
}

function mergeValues(live: unknown, applied: unknown, schema: FieldSchema | undefined): unknown {
  if (live === undefined) return applied;
  if (isGranular(live, schema) && isGranular(applied, schema)) return mergeMaps(live, applied, schema);
  const liveItems = itemsByElement(live, schema);
  const appliedItems = itemsByElement(applied, schema);
  return liveItems && appliedItems ? mergeItems(liveItems, appliedItems, schema) : applied;
}

function mergeMaps(live: Tree, applied: Tree, schema: FieldSchema | undefined): Tree {
  const merged: MutableTree = { ...live };
  for (const field of Object.keys(applied)) {
    setOwn(merged, field, mergeValues(own(live, field), applied[field], fieldSchema(schema, field)));
  }
  return merged;
}

// Applied items keep the configuration's order. Other items remain before the items that followed them.
function mergeItems(
  live: Map<string, unknown>,
  applied: Map<string, unknown>,
  schema: FieldSchema | undefined,
): unknown[] {
  const others = [...live.keys()];
  const positions = new Map(others.map((element, index) => [element, index]));
  const merged: unknown[] = [];
  let taken = 0;
  const takeOthers = (end: number, stopAtShared: boolean) => {
    for (; taken < end; taken++) {
      const element = others[taken]!;
      const shared = applied.has(element);
      if (shared && stopAtShared) return;
      if (!shared) merged.push(live.get(element));
    }
  };
  for (const [element, item] of applied) {
    takeOthers(others.length, true);
    takeOthers((positions.get(element) ?? -1) + 1, false);
    merged.push(mergeValues(live.get(element), item, itemSchema(schema)));
  }
  takeOthers(others.length, false);
  return merged;
}

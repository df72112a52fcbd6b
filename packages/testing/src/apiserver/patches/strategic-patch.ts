import { type FieldSchema, fieldSchema, itemSchema } from "../fields/schema.ts";
import { isTree, type MutableTree, own, sameJson, setOwn, type Tree } from "../json.ts";
import { badRequest } from "../status.ts";

// Directives: https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/
const PATCH = "$patch";
const RETAIN_KEYS = "$retainKeys";
const DELETE_FROM = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER = "$setElementOrder/";

/**
 * Applies a strategic merge patch: like a JSON merge patch, but lists with keys are merged by item and sets are united.
 */
export function strategicPatch(value: unknown, patch: unknown, schema: FieldSchema | undefined): unknown {
  if (!isTree(patch)) throw badRequest("a strategic merge patch must be an object");
  return patchMap(isTree(value) ? value : {}, patch, schema);
}

function patchMap(live: Tree, patch: Tree, schema: FieldSchema | undefined): Tree {
  const { [PATCH]: directive, [RETAIN_KEYS]: retained, ...fields } = patch;
  if (directive === "replace") return stripDirectives(fields) as Tree;
  if (directive === "delete") return {};
  const merged: MutableTree = Array.isArray(retained) ? pick(live, retained) : { ...live };
  for (const [field, change] of Object.entries(fields)) {
    if (field.startsWith(ELEMENT_ORDER)) continue;
    if (field.startsWith(DELETE_FROM)) deleteFromList(merged, field.slice(DELETE_FROM.length), change);
    else if (change === null) delete merged[field];
    else setOwn(merged, field, patchValue(own(merged, field), change, fieldSchema(schema, field)));
  }
  for (const [field, order] of Object.entries(fields)) {
    if (field.startsWith(ELEMENT_ORDER)) orderList(merged, field.slice(ELEMENT_ORDER.length), order, schema);
  }
  return merged;
}

function patchValue(live: unknown, change: unknown, schema: FieldSchema | undefined): unknown {
  if (isTree(change)) return patchMap(isTree(live) ? live : {}, change, schema);
  if (!Array.isArray(change)) return change;
  if (schema?.type === "set") return [...new Set([...(Array.isArray(live) ? live : []), ...change])];
  const key = patchKey(schema);
  if (key === undefined || change.some((item) => !isTree(item))) return change;
  return patchItems(Array.isArray(live) ? live : [], change as Tree[], key, itemSchema(schema));
}

function patchItems(
  live: unknown[],
  changes: Tree[],
  key: string,
  schema: FieldSchema | undefined,
): unknown[] {
  if (changes.some((item) => item[PATCH] === "replace")) {
    return changes.filter((item) => item[PATCH] !== "replace").map(stripDirectives);
  }
  let items = [...live];
  for (const item of changes) {
    if (item[key] === undefined)
      throw badRequest(`map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
    const isIt = (other: unknown) => isTree(other) && sameJson(other[key], item[key]);
    if (item[PATCH] === "delete") {
      items = items.filter((other) => !isIt(other));
      continue;
    }
    const index = items.findIndex(isIt);
    if (index < 0) items.push(patchMap({}, item, schema));
    else items[index] = patchMap(items[index] as Tree, item, schema);
  }
  return items;
}

function orderList(map: MutableTree, field: string, order: unknown, schema: FieldSchema | undefined): void {
  const list = own(map, field);
  if (!Array.isArray(list) || !Array.isArray(order)) return;
  const key = patchKey(fieldSchema(schema, field));
  const identity = (item: unknown) => JSON.stringify(key !== undefined && isTree(item) ? item[key] : item);
  const places = new Map(order.map((item, index) => [identity(item), index]));
  const placed = list.filter((item) => places.has(identity(item)));
  const others = list.filter((item) => !places.has(identity(item)));
  placed.sort((a, b) => places.get(identity(a))! - places.get(identity(b))!);
  setOwn(map, field, [...placed, ...others]);
}

function deleteFromList(map: MutableTree, field: string, values: unknown): void {
  const list = own(map, field);
  if (!Array.isArray(list) || !Array.isArray(values)) return;
  setOwn(
    map,
    field,
    list.filter((item) => !values.some((value) => sameJson(value, item))),
  );
}

// The first key is the patchMergeKey of lists with several keys, such as container ports.
function patchKey(schema: FieldSchema | undefined): string | undefined {
  return schema?.type === "list" ? schema.keys[0] : undefined;
}

function pick(tree: Tree, fields: unknown[]): MutableTree {
  return Object.fromEntries(Object.entries(tree).filter(([field]) => fields.includes(field)));
}

function stripDirectives(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(stripDirectives);
  if (!isTree(value)) return value;
  const kept: MutableTree = {};
  for (const [field, child] of Object.entries(value))
    if (!field.startsWith("$")) setOwn(kept, field, stripDirectives(child));
  return kept;
}

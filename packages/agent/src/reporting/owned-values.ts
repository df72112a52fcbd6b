import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import { parseExactly } from "@nodekeeper/core/lib";
import { type ApplyPart, applyParts } from "./bodies.ts";
import { isObject, type Json, type JsonObject, sameJson } from "./json.ts";

function appliedEntry(
  { metadata }: KubeObject,
  manager: string,
  part: ApplyPart,
): ManagedFieldsEntry | undefined {
  const subresource = part === "status" ? "status" : undefined;
  return metadata.managedFields?.find(
    (entry) =>
      entry.manager === manager &&
      entry.operation === "Apply" &&
      (entry.subresource || undefined) === subresource,
  );
}

/** Returns the fieldsV1 set that `manager` applied in one part of a live object. Undefined if it owns nothing. */
export function appliedFields(object: KubeObject, manager: string, part: ApplyPart): JsonObject | undefined {
  const fields = appliedEntry(object, manager, part)?.fieldsV1 as Json | undefined;
  return isObject(fields) ? fields : undefined;
}

/**
 * Returns when `manager` last changed its fields of one part, their values or their set, as the API server states it:
 * RFC 3339, whole seconds. Empty if it owns nothing.
 */
export function appliedTime(object: KubeObject, manager: string, part: ApplyPart): string {
  return appliedEntry(object, manager, part)?.time ?? "";
}

/** Returns whether a manager's fieldsV1 set contains the element at a path. */
export function hasField({ fieldsV1 }: ManagedFieldsEntry, path: readonly string[]): boolean {
  let fields = fieldsV1 as Json | undefined;
  for (const element of path)
    fields = isObject(fields) && Object.hasOwn(fields, element) ? fields[element] : undefined;
  return fields !== undefined;
}

/** Returns the set of `appliedFields` as JSON. Equal if the sets are equal; empty if `manager` owns nothing. */
export function ownedFields(object: KubeObject, manager: string, part: ApplyPart): string {
  const fields = appliedFields(object, manager, part);
  return fields ? JSON.stringify(fields) : "";
}

/** Returns the values of all fields applied by `manager`, in the shape of the object. */
export function ownedValues(object: KubeObject, manager: string): JsonObject {
  const values: JsonObject = {};
  for (const part of applyParts) Object.assign(values, appliedValues(object, manager, part));
  return values;
}

/** Returns the values of the fields that `manager` applied in one part. Empty if it owns nothing. */
export function appliedValues(object: KubeObject, manager: string, part: ApplyPart): JsonObject {
  const fields = appliedFields(object, manager, part);
  const selected = fields && select(object as unknown as Json, fields);
  return isObject(selected) ? selected : {};
}

/**
 * Selects the fields of a fieldsV1 set from a value. `f:` selects a member, `k:` a list item by its keys, `v:` an item
 * of a set, and `.` the map or list itself: https://kubernetes.io/docs/reference/using-api/server-side-apply/
 *
 * Omits a non-empty map that is in the set without its members. It was applied empty, or is atomic: without the schema
 * this is unknown, and the members may belong to other managers.
 */
function select(value: Json, fields: JsonObject): Json | undefined {
  const elements = Object.keys(fields).filter((element) => element !== ".");
  if (isEmpty(fields)) return isObject(value) && !isEmpty(value) ? undefined : value;
  if (Array.isArray(value)) {
    return elements.flatMap((element) => {
      const item = value.find((each) => isItem(each, element));
      const picked = item === undefined ? undefined : select(item, below(fields, element));
      return picked === undefined ? [] : [picked];
    });
  }
  if (!isObject(value)) return undefined;
  const picked: JsonObject = {};
  for (const element of elements) {
    const name = element.slice(2);
    const member = Object.hasOwn(value, name) ? value[name] : undefined;
    const chosen = member === undefined ? undefined : select(member, below(fields, element));
    if (chosen !== undefined) picked[name] = chosen;
  }
  return picked;
}

function isEmpty(object: JsonObject): boolean {
  return Object.keys(object).length === 0;
}

function below(fields: JsonObject, element: string): JsonObject {
  const child = fields[element];
  return isObject(child) ? child : {};
}

function isItem(item: Json, element: string): boolean {
  const named = parseExactly(element.slice(2)) as Json;
  if (element.startsWith("v:")) return sameJson(item, named);
  if (!element.startsWith("k:") || !isObject(named) || !isObject(item)) return false;
  return Object.entries(named).every(([key, value]) => sameJson(item[key], value));
}

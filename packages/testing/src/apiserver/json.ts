import type { KubeObject } from "@nodekeeper/core/kube";
import { isRawNumber } from "@nodekeeper/core/lib";

/** A JSON object with unknown fields. Stored trees are immutable and can be shared. */
export type Tree = { readonly [field: string]: unknown };

/** A JSON object under construction. */
export type MutableTree = { [field: string]: unknown };

/** Returns whether a value is a JSON object rather than an array, null or a RawNumber. */
export function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isRawNumber(value);
}

/** Returns an own field, never one of Object.prototype. */
export function own(tree: Tree, field: string): unknown {
  return Object.hasOwn(tree, field) ? tree[field] : undefined;
}

/** Sets an own field. `__proto__` becomes an ordinary field instead of changing the prototype. */
export function setOwn<T>(tree: { [field: string]: T }, field: string, value: T): void {
  if (field !== "__proto__") tree[field] = value;
  else Object.defineProperty(tree, field, { value, enumerable: true, configurable: true, writable: true });
}

/** Returns the value at a path of own fields. Undefined if it does not exist. */
export function at(value: unknown, ...path: string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isTree(current)) return undefined;
    current = own(current, field);
  }
  return current;
}

/** Returns a copy without the named fields. */
export function without(tree: Tree, ...fields: string[]): MutableTree {
  const copy: MutableTree = { ...tree };
  for (const field of fields) delete copy[field];
  return copy;
}

/** Compares JSON values deeply. The order of fields is irrelevant. Shared subtrees are not traversed. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
  }
  if (isRawNumber(a) && isRawNumber(b)) return a.rawJSON === b.rawJSON;
  if (!isTree(a) || !isTree(b)) return false;
  const fields = Object.keys(a);
  if (fields.length !== Object.keys(b).length) return false;
  return fields.every((field) => Object.hasOwn(b, field) && sameJson(a[field], b[field]));
}

/** Removes null fields, as decoding into Go types does. Returns the same tree if there are none. */
export function dropNulls<T>(value: T): T {
  if (Array.isArray(value)) {
    const items = value.map(dropNulls);
    return items.some((item, index) => item !== value[index]) ? (items as T) : value;
  }
  if (!isTree(value)) return value;
  let copy: MutableTree | undefined;
  for (const [field, child] of Object.entries(value)) {
    const kept = child === null ? undefined : dropNulls(child);
    if (kept === child) continue;
    copy ??= { ...value };
    if (kept === undefined) delete copy[field];
    else setOwn(copy, field, kept);
  }
  return (copy ?? value) as T;
}

/** Returns a copy without undefined fields, so that it equals its JSON. */
export function compact<T extends object>(tree: T): T {
  const copy: MutableTree = {};
  for (const [field, value] of Object.entries(tree)) if (value !== undefined) setOwn(copy, field, value);
  return copy as T;
}

/** Returns the key of an object: "kube-system/dns", or "node-1" for cluster-scoped objects. */
export function keyOf(object: KubeObject): string {
  return objectKey(object.metadata.namespace, object.metadata.name ?? "");
}

export function objectKey(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}

/** Formats a time as RFC 3339 in seconds, like the API. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

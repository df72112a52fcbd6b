import { isObject, type Json, type JsonObject, sameJson } from "./json.ts";

/** Lists, by field name, whose items are merged if these members are equal. All other lists are concatenated. */
export const listKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ["topologyZone", ["type", "name"]],
  ["children", ["type", "name"]],
  ["siblings", ["type", "name"]],
  ["attributes", ["name"]],
  ["allocations", ["consumer"]],
  ["resourcePackages", ["packageName"]],
  ["resourcePools", ["poolName"]],
  ["conditions", ["type"]],
  ["taints", ["key", "effect", "qosLevel"]],
  ["nodeResourceProperties", ["propertyName"]],
]);

/** Called with a path for which different values are reported. */
export type OnConflict = (path: string) => void;

/**
 * Merges two values that one plugin reports for the same field, by the rules of `mergeObject`; the later scalar wins.
 * @param path path of the field, "status.topologyZone"
 */
export function mergeReports(
  before: Json,
  now: Json,
  path: string,
  name: string,
  onConflict: OnConflict,
): Json {
  return new Merge(onConflict).values(before, now, path, name);
}

/** Merges the list items in a value that have the same keys, as reports of two plugins are merged. */
export function mergeDuplicates(value: Json, path: string, name: string, onConflict: OnConflict): Json {
  if (isObject(value)) {
    const entries = Object.entries(value);
    const merged = entries.map(([key, member]) => [
      key,
      mergeDuplicates(member, `${path}.${key}`, key, onConflict),
    ]);
    return merged.every(([, member], at) => member === entries[at]![1]) ? value : Object.fromEntries(merged);
  }
  const keys = listKeys.get(name);
  if (!keys || !Array.isArray(value)) return value;
  const items = value.map((item) =>
    mergeDuplicates(item, `${path}[${itemIdentity(item, keys)}]`, "", onConflict),
  );
  const merged = new Merge(onConflict).values([], items, path, name) as Json[];
  return merged.length === value.length && merged.every((item, at) => item === value[at]) ? value : merged;
}

// Does not modify its inputs, which are shared with later merges.
export class Merge {
  readonly #onConflict: OnConflict;

  constructor(onConflict: OnConflict) {
    this.#onConflict = onConflict;
  }

  values(before: Json | undefined, now: Json, path: string, name: string): Json {
    if (before === undefined) return now;
    if (Array.isArray(before) && Array.isArray(now))
      return this.#lists(before, now, path, listKeys.get(name));
    if (isObject(before) && isObject(now)) return this.#objects(before, now, path);
    if (!sameJson(before, now)) this.#onConflict(path);
    return now;
  }

  #objects(before: JsonObject, now: JsonObject, path: string): JsonObject {
    const merged = { ...before };
    for (const [key, value] of Object.entries(now)) {
      // hasOwn: a member called "constructor" must not resolve to Object.prototype.
      const earlier = Object.hasOwn(before, key) ? before[key] : undefined;
      merged[key] = this.values(earlier, value, `${path}.${key}`, key);
    }
    return sortKeys(merged);
  }

  #lists(before: Json[], now: Json[], path: string, keys: readonly string[] | undefined): Json[] {
    if (!keys) return [...before, ...now];
    const merged = [...before];
    const places = new Map<string | undefined, number>(
      before.map((item, at) => [itemIdentity(item, keys), at]),
    );
    for (const item of now) {
      const id = itemIdentity(item, keys);
      const at = id === undefined ? undefined : places.get(id);
      if (at !== undefined) {
        merged[at] = this.values(merged[at], item, `${path}[${id}]`, "");
        continue;
      }
      if (id !== undefined) places.set(id, merged.length);
      merged.push(item);
    }
    return merged;
  }
}

/** Identity of a list item by its keys; undefined if it has none of them. */
export function itemIdentity(item: Json, keys: readonly string[]): string | undefined {
  if (!isObject(item)) return undefined;
  const values = keys.map((key) => item[key] ?? "");
  return values.every((value) => value === "") ? undefined : values.map(String).join("/");
}

/** A copy with sorted keys. */
export function sortKeys(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

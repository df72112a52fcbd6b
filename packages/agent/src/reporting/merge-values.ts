import type { StepMeter, Steps } from "@nodekeeper/core/lib";
import { isContainer, isObject, type Json, type JsonObject, sameJson } from "./json.ts";

/** Keys of lists by field name. Items with equal keys are merged. All other lists are concatenated. */
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

/** Called with each path for which different values are reported. */
export type OnConflict = (path: string) => void;

export interface MergeOptions {
  onConflict: OnConflict;
  meter: StepMeter;
  /** Maximum number of copied members and items; default: no limit. If exceeded, an Error is thrown. */
  mostCopies?: number;
}

/** Merges reported values by the rules of `mergeObject`. Does not modify its inputs, which later merges share. */
export class Merge {
  readonly #onConflict: OnConflict;
  readonly #meter: StepMeter;
  readonly #mostCopies: number;
  #copies = 0;

  constructor({ onConflict, meter, mostCopies = Number.POSITIVE_INFINITY }: MergeOptions) {
    this.#onConflict = onConflict;
    this.#meter = meter;
    this.#mostCopies = mostCopies;
  }

  /**
   * Merges two values of one field or member. If they differ and can't be merged, returns `now` and reports a conflict.
   * @param path path of the field: "status.topologyZone"
   * @param name name of the field or member that contains the values
   */
  *values(before: Json | undefined, now: Json, path: string, name: string): Steps<Json> {
    if (before === undefined) return now;
    if (Array.isArray(before) && Array.isArray(now))
      return yield* this.#lists(before, now, path, listKeys.get(name));
    if (isObject(before) && isObject(now)) return yield* this.#objects(before, now, path);
    if (!sameJson(before, now)) this.#onConflict(path);
    return now;
  }

  /**
   * Merges list items with equal keys within one value, by the rules for reports of two plugins.
   * @param path path of the field: "status.topologyZone"
   * @param name name of the field or member that contains the value
   */
  *withoutDuplicates(value: Json, path: string, name: string): Steps<Json> {
    if (isObject(value)) {
      let changed: JsonObject | undefined;
      for (const key of Object.keys(value)) {
        if (this.#meter.spend()) yield;
        const member = value[key]!;
        if (!isContainer(member)) continue;
        const merged = yield* this.withoutDuplicates(member, `${path}.${key}`, key);
        if (merged === member) continue;
        changed ??= { ...value };
        changed[key] = merged;
      }
      return changed ?? value;
    }
    const keys = listKeys.get(name);
    if (!keys || !Array.isArray(value)) return value;
    const items: Json[] = [];
    const identities = new Set<string>();
    let isChanged = false;
    let hasDuplicates = false;
    for (const item of value) {
      if (this.#meter.spend()) yield;
      const identity = itemIdentity(item, keys);
      if (identity !== undefined) hasDuplicates ||= identities.has(identity);
      if (identity !== undefined) identities.add(identity);
      const merged = isContainer(item)
        ? yield* this.withoutDuplicates(item, `${path}[${identity}]`, "")
        : item;
      isChanged ||= merged !== item;
      items.push(merged);
    }
    if (hasDuplicates) return yield* this.values([], items, path, name);
    return isChanged ? items : value;
  }

  *#objects(before: JsonObject, now: JsonObject, path: string): Steps<JsonObject> {
    const merged = { ...before };
    if (this.#copied(Object.keys(before).length)) yield;
    for (const [key, value] of Object.entries(now)) {
      if (this.#copied(1)) yield;
      // hasOwn: a member named "constructor" must not resolve to Object.prototype.
      const earlier = Object.hasOwn(before, key) ? before[key] : undefined;
      merged[key] = yield* this.values(earlier, value, `${path}.${key}`, key);
    }
    return sortKeys(merged);
  }

  *#lists(before: Json[], now: Json[], path: string, keys: readonly string[] | undefined): Steps<Json[]> {
    if (this.#copied(before.length)) yield;
    if (!keys) return [...before, ...now];
    const merged = [...before];
    const places = new Map<string, number>();
    for (const [at, item] of before.entries()) {
      const id = itemIdentity(item, keys);
      if (id !== undefined) places.set(id, at);
    }
    for (const item of now) {
      if (this.#copied(1)) yield;
      const id = itemIdentity(item, keys);
      const at = id === undefined ? undefined : places.get(id);
      if (at !== undefined) {
        merged[at] = yield* this.values(merged[at], item, `${path}[${id}]`, "");
        continue;
      }
      if (id !== undefined) places.set(id, merged.length);
      merged.push(item);
    }
    return merged;
  }

  // Counts copies. Returns whether the current step must end.
  #copied(count: number): boolean {
    this.#copies += count;
    if (this.#copies > this.#mostCopies)
      throw new Error(`reports too many values twice: more than ${this.#mostCopies} to merge`);
    return this.#meter.spend(count);
  }
}

/** Returns the identity of a list item by its keys. Undefined if it has none of them. */
export function itemIdentity(item: Json, keys: readonly string[]): string | undefined {
  if (!isObject(item)) return undefined;
  const values = keys.map((key) => item[key] ?? "");
  return values.every((value) => value === "") ? undefined : values.map(String).join("/");
}

/** Returns a copy with sorted keys. */
export function sortKeys(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

import type { GroupVersionKind } from "../kube/index.ts";
import type { PluginContent } from "./content.ts";
import { isObject, type Json, type JsonObject, sameJson } from "./json.ts";
import type { Part } from "./kinds.ts";

/** Two plugins say different things about one place. */
export interface MergeConflict {
  /** "status.topologyPolicy" */
  path: string;
  /** The plugin whose value is published. */
  winner: string;
  /** The plugins that report the same field and sort before it; at least one of them says otherwise. */
  others: readonly string[];
}

/** All that plugins say about one object. */
export interface MergedObject {
  kind: GroupVersionKind;
  parts: Record<Part, JsonObject>;
  /** In a fixed order; at most 100. */
  conflicts: MergeConflict[];
  /** The plugins that contribute, sorted. */
  plugins: string[];
}

const MAX_CONFLICTS = 100;

// Lists whose items are the same thing when these members are equal. All other lists are appended.
const listKeys: ReadonlyMap<string, readonly string[]> = new Map([
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

/**
 * Merges what all plugins say about one object (a `kindKey`); undefined where nobody says anything.
 * A pure function of the map's entries, whatever their order: maps merge by key, objects deeply, lists append
 * (those of `listKeys` merge by their keys), and of scalars the one of the plugin whose name sorts last wins;
 * a difference is recorded.
 */
export function mergeObject(
  object: string,
  contents: ReadonlyMap<string, PluginContent>,
): MergedObject | undefined {
  let merged: MergedObject | undefined;
  const reporters = new Map<string, string[]>();
  for (const plugin of [...contents.keys()].sort()) {
    for (const field of contents.get(plugin)!.fields) {
      if (field.object !== object) continue;
      merged ??= {
        kind: field.kind,
        parts: { spec: {}, status: {}, metadata: {} },
        conflicts: [],
        plugins: [],
      };
      if (merged.plugins.at(-1) !== plugin) merged.plugins.push(plugin);
      const path = `${field.part}.${field.name}`;
      const earlier = reporters.get(path) ?? [];
      const fields = merged.parts[field.part];
      const merge = new Merge(merged.conflicts, plugin, earlier);
      fields[field.name] = merge.values(fields[field.name], field.value, path, field.name);
      reporters.set(path, [...earlier, plugin]);
    }
  }
  if (!merged) return undefined;
  const { spec, status, metadata } = merged.parts;
  return {
    ...merged,
    parts: { spec: sortKeys(spec), status: sortKeys(status), metadata: sortKeys(metadata) },
  };
}

// Never changes its inputs: contents are shared with later merges.
class Merge {
  readonly #conflicts: MergeConflict[];
  readonly #plugin: string;
  readonly #earlier: readonly string[];

  constructor(conflicts: MergeConflict[], plugin: string, earlier: readonly string[]) {
    this.#conflicts = conflicts;
    this.#plugin = plugin;
    this.#earlier = earlier;
  }

  values(before: Json | undefined, now: Json, path: string, name: string): Json {
    if (before === undefined) return now;
    if (Array.isArray(before) && Array.isArray(now))
      return this.#lists(before, now, path, listKeys.get(name));
    if (isObject(before) && isObject(now)) return this.#objects(before, now, path);
    if (!sameJson(before, now)) this.#conflict(path);
    return now;
  }

  #objects(before: JsonObject, now: JsonObject, path: string): JsonObject {
    const merged = { ...before };
    for (const [key, value] of Object.entries(now)) {
      // hasOwn: a member called "constructor" must not meet Object's own.
      const earlier = Object.hasOwn(before, key) ? before[key] : undefined;
      merged[key] = this.values(earlier, value, `${path}.${key}`, key);
    }
    return sortKeys(merged);
  }

  #lists(before: Json[], now: Json[], path: string, keys: readonly string[] | undefined): Json[] {
    if (!keys) return [...before, ...now];
    const merged = [...before];
    const places = new Map(before.map((item, at) => [identity(item, keys), at]));
    for (const item of now) {
      const id = identity(item, keys);
      const at = id === undefined ? undefined : places.get(id);
      if (at === undefined) merged.push(item);
      else merged[at] = this.values(merged[at], item, `${path}[${id}]`, "");
    }
    return merged;
  }

  #conflict(path: string): void {
    if (this.#conflicts.length >= MAX_CONFLICTS) return;
    this.#conflicts.push({ path, winner: this.#plugin, others: this.#earlier });
  }
}

function identity(item: Json, keys: readonly string[]): string | undefined {
  if (!isObject(item)) return undefined;
  const values = keys.map((key) => item[key] ?? "");
  return values.every((value) => value === "") ? undefined : values.map(String).join("/");
}

function sortKeys(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}

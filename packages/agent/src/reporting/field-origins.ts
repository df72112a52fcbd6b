import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { PluginContent } from "./content.ts";
import { isObject, type Json } from "./json.ts";
import { itemIdentity, listKeys } from "./merge-values.ts";
import { byRank } from "./rank.ts";

/** A page of fields of a published object with the plugins that report them, sorted by path. */
type FieldPage = ApiAnswers["objects/fields"];
type FieldOrigin = FieldPage["items"][number];

const LONGEST_VALUE = 1_000;
const LONGEST_PATH = 1_000;
// Bounds the work per response. A report may have more values than any reader can use.
const MOST_FIELDS = 20_000;

/**
 * Returns the fields of a published object with the plugins that report them. The rules are those of `mergeObject`: if
 * values differ, that of the highest-ranked plugin is published. A list without keys is one field per plugin.
 * @param lost plugins that are lost
 * @param after path after which the page starts; empty for the first page
 */
export function fieldOrigins(
  object: string,
  contents: ReadonlyMap<string, PluginContent>,
  { after, limit, lost }: { after: string; limit: number; lost?: ReadonlySet<string> },
): FieldPage {
  const found = new Map<string, FieldOrigin>();
  for (const plugin of byRank(contents.keys(), lost)) {
    for (const field of contents.get(plugin)!.fields) {
      if (field.object !== object) continue;
      const add = (path: string, value: Json) => addTo(found, path, plugin, value);
      leaves(field.value, `${field.part}.${field.name}`, field.name, add);
    }
  }
  const sorted = [...found.values()].filter(({ path }) => path > after).sort((a, b) => compare(a, b));
  const items = sorted.slice(0, limit);
  return sorted.length > items.length ? { items, continue: items.at(-1)!.path } : { items };
}

function addTo(found: Map<string, FieldOrigin>, path: string, plugin: string, value: Json): void {
  const key = path.slice(0, LONGEST_PATH);
  const before = found.get(key);
  if (!before && found.size >= MOST_FIELDS) return;
  const others = before ? [...before.others, before.plugin] : [];
  const isSame = before?.plugin === plugin;
  const shown = JSON.stringify(value).slice(0, LONGEST_VALUE);
  found.set(key, { path: key, plugin, others: isSame ? before.others : others, value: shown });
}

function leaves(value: Json, path: string, name: string, add: (path: string, value: Json) => void): void {
  if (isObject(value) && Object.keys(value).length > 0) {
    for (const [key, member] of Object.entries(value)) leaves(member, `${path}.${key}`, key, add);
    return;
  }
  const keys = listKeys.get(name);
  if (!keys || !Array.isArray(value)) {
    add(path, value);
    return;
  }
  for (const [at, item] of value.entries())
    leaves(item, `${path}[${itemIdentity(item, keys) ?? at}]`, "", add);
}

function compare(a: FieldOrigin, b: FieldOrigin): number {
  return a.path < b.path ? -1 : 1;
}

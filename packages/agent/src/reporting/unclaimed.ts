import type { KubeObject, ManagedFieldsEntry } from "@nodekeeper/core/kube";
import type { ContentField, PluginContent } from "./content.ts";
import { isObject, type Json, type JsonObject, normalize, sameJson } from "./json.ts";
import { type KindPolicy, kindKey, OWN_TAINTS, type Part } from "./kinds.ts";
import type { MergedObject } from "./merge.ts";
import { itemIdentity, listKeys } from "./merge-values.ts";
import { ownedValues } from "./owned-values.ts";
import { storedBytes } from "./stored-bytes.ts";
import { ownTaints, type TaintOwner, taintsOf } from "./taints.ts";

const parts: readonly Part[] = ["spec", "status", "metadata"];

/**
 * Returns the fields of a live object that earlier agent processes published, as a plugin's content: fields applied by
 * the agent's field manager, and taints that are proven to be the agent's.
 */
export function publishedBefore(live: KubeObject, policy: KindPolicy, owner: TaintOwner): PluginContent {
  const values = ownedValues(live, owner.manager);
  const fields: ContentField[] = [];
  for (const part of parts) {
    const members = values[part];
    if (!(part in policy.fields) || !isObject(members)) continue;
    for (const [name, value] of Object.entries(members)) {
      if (!(policy.fields[part]?.includes(name) ?? true)) continue;
      const kept = ownPart(live, `${part}.${name}`, value, owner);
      if (kept === undefined) continue;
      const own = normalize(kept);
      const bytes = name.length + storedBytes(own);
      fields.push({ kind: policy.kind, object: kindKey(policy.kind), part, name, value: own, bytes });
    }
  }
  return { fields, problems: [] };
}

/**
 * Returns whether an object has only fields that the agent applied, apart from defaults: managedFields lists no other
 * manager, and the list of taints, which the agent owns as a whole, has no taint of another client. False without
 * managedFields, because the owner is then unknown.
 */
export function isOnlyOwn(live: KubeObject, owner: TaintOwner): boolean {
  const { managedFields = [] } = live.metadata;
  const isOwn = ({ manager, operation }: ManagedFieldsEntry) =>
    manager === owner.manager && operation === "Apply";
  const taints = taintsOf(live as unknown as JsonObject);
  return (
    managedFields.length > 0 && managedFields.every(isOwn) && taints.length === ownTaints(live, owner).length
  );
}

function ownPart(live: KubeObject, path: string, value: Json, owner: TaintOwner): Json | undefined {
  if (path === "spec.taints") {
    const taints = ownTaints(live, owner);
    return taints.length > 0 ? taints : undefined;
  }
  if (path === "metadata.annotations" && isObject(value)) {
    const { [OWN_TAINTS]: _, ...others } = value;
    return Object.keys(others).length > 0 ? others : undefined;
  }
  return value;
}

/**
 * Returns the part of `content` that is not in `merged`: fields, members and list items that no plugin reports. Returns
 * `content` itself if `merged` contains none of it.
 */
export function unclaimed(content: PluginContent, merged: MergedObject | undefined): PluginContent {
  if (!merged) return content;
  let isChanged = false;
  const fields = content.fields.flatMap((field) => {
    const left = uncovered(field.value, merged.parts[field.part][field.name], field.name);
    if (sameJson(left, field.value)) return [field];
    isChanged = true;
    return left === undefined
      ? []
      : [{ ...field, value: left, bytes: field.name.length + storedBytes(left) }];
  });
  return isChanged ? { fields, problems: [] } : content;
}

/**
 * Returns the part of `published` at the paths of `content`: the published fields of a plugin's earlier report. Omits
 * members and list items that `content` lacks, and lists without keys that differ, because they may have items of other
 * plugins.
 */
export function publishedOf(published: PluginContent, content: PluginContent): PluginContent {
  const before = new Map(
    published.fields.map((field) => [`${field.object} ${field.part}.${field.name}`, field]),
  );
  const fields = content.fields.flatMap(({ object, part, name, value }) => {
    const field = before.get(`${object} ${part}.${name}`);
    const covered = field && coveredBy(field.value, value, name);
    if (!field || covered === undefined) return [];
    return [{ ...field, value: covered, bytes: name.length + storedBytes(covered) }];
  });
  return { fields, problems: [] };
}

function coveredBy(value: Json, by: Json, name: string): Json | undefined {
  if (sameJson(value, by)) return value;
  if (isObject(value)) {
    if (!isObject(by)) return undefined;
    const covered: JsonObject = {};
    for (const [key, member] of Object.entries(value)) {
      const common = Object.hasOwn(by, key) ? coveredBy(member, by[key]!, key) : undefined;
      if (common !== undefined) covered[key] = common;
    }
    return Object.keys(covered).length > 0 ? covered : undefined;
  }
  if (!Array.isArray(value)) return value;
  const keys = listKeys.get(name);
  if (!keys || !Array.isArray(by)) return undefined;
  const items = new Map(by.map((item) => [itemIdentity(item, keys), item]));
  const covered = value.flatMap((item) => {
    const id = itemIdentity(item, keys);
    const common = id !== undefined && items.has(id) ? coveredBy(item, items.get(id)!, "") : undefined;
    return isObject(common) ? [{ ...keysOf(item as JsonObject, keys), ...common }] : [];
  });
  return covered.length > 0 ? covered : undefined;
}

function uncovered(value: Json, by: Json | undefined, name: string): Json | undefined {
  if (by === undefined) return value;
  if (isObject(value) && isObject(by)) {
    const left: JsonObject = {};
    for (const [key, member] of Object.entries(value)) {
      const rest = uncovered(member, Object.hasOwn(by, key) ? by[key] : undefined, key);
      if (rest !== undefined) left[key] = rest;
    }
    return Object.keys(left).length > 0 ? left : undefined;
  }
  const keys = listKeys.get(name);
  if (!keys || !Array.isArray(value) || !Array.isArray(by)) return undefined;
  const items = new Map(by.map((item) => [itemIdentity(item, keys), item]));
  const left = value.flatMap((item) => {
    const id = itemIdentity(item, keys);
    if (id === undefined) return by.some((other) => sameJson(other, item)) ? [] : [item];
    const rest = uncovered(item, items.get(id), "");
    return isObject(rest) ? [{ ...keysOf(item as JsonObject, keys), ...rest }] : [];
  });
  return left.length > 0 ? left : undefined;
}

function keysOf(item: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.flatMap((key) => (item[key] === undefined ? [] : [[key, item[key]]])));
}

/** Returns the paths in the content, for messages: "status.capacity.example.com/gpus", "spec.taints[a/NoSchedule/]". */
export function pathsOf({ fields }: PluginContent): string[] {
  return fields.flatMap(({ part, name, value }) => {
    const path = `${part}.${name}`;
    const keys = listKeys.get(name);
    if (isObject(value)) return Object.keys(value).map((key) => `${path}.${key}`);
    if (keys && Array.isArray(value))
      return value.map((item) => `${path}[${itemIdentity(item, keys) ?? ""}]`);
    return [path];
  });
}

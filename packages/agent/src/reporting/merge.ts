import type { ApiAnswers, Frozen } from "@nodekeeper/api/openapi";
import type { GroupVersionKind } from "@nodekeeper/core/kube";
import { completed, type Steps } from "@nodekeeper/core/lib";
import type { PluginContent } from "./content.ts";
import { type JsonObject, reportMeter } from "./json.ts";
import type { Part } from "./kinds.ts";
import { Merge, sortKeys } from "./merge-values.ts";
import { byRank } from "./rank.ts";

/**
 * Plugins report different values for one path. `others`: the plugins that report the same field and rank below
 * `winner`. The value of at least one of them differs.
 */
export type MergeConflict = Frozen<ApiAnswers["objects"][number]["conflicts"][number]>;

/** Merged reports of all plugins for one object. */
export interface MergedObject {
  kind: GroupVersionKind;
  parts: Record<Part, JsonObject>;
  /** In merge order; at most 100. */
  conflicts: MergeConflict[];
  /** Contributing plugins, sorted. */
  plugins: string[];
}

const MAX_CONFLICTS = 100;

/**
 * Merges the reports of all plugins for one object (a `kindKey`). Returns undefined if no plugin reports it. The result
 * depends only on the map's entries, not on their order. Objects are merged deeply. Lists are concatenated, except
 * those in `listKeys`, which are merged by their keys. If scalars differ, the value of the highest-ranked plugin
 * (`byRank`) is used and a conflict is recorded.
 * @param lost plugins that are lost
 */
export function mergeObject(
  object: string,
  contents: ReadonlyMap<string, PluginContent>,
  lost?: ReadonlySet<string>,
): MergedObject | undefined {
  return completed(mergingObject(object, contents, lost));
}

/** `mergeObject` in steps. */
export function* mergingObject(
  object: string,
  contents: ReadonlyMap<string, PluginContent>,
  lost?: ReadonlySet<string>,
): Steps<MergedObject | undefined> {
  const meter = reportMeter();
  let merged: MergedObject | undefined;
  const reporters = new Map<string, string[]>();
  for (const plugin of byRank(contents.keys(), lost)) {
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
      const { conflicts } = merged;
      const onConflict = (path: string) => {
        if (conflicts.length < MAX_CONFLICTS) conflicts.push({ path, winner: plugin, others: earlier });
      };
      const merge = new Merge({ onConflict, meter });
      fields[field.name] = yield* merge.values(fields[field.name], field.value, path, field.name);
      reporters.set(path, [...earlier, plugin]);
    }
  }
  if (!merged) return undefined;
  const { spec, status, metadata } = merged.parts;
  return {
    ...merged,
    plugins: merged.plugins.sort(),
    parts: { spec: sortKeys(spec), status: sortKeys(status), metadata: sortKeys(metadata) },
  };
}

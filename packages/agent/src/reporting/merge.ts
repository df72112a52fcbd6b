import type { GroupVersionKind } from "@nodekeeper/core/kube";
import { completed, type Steps } from "@nodekeeper/core/lib";
import type { PluginContent } from "./content.ts";
import { type JsonObject, reportMeter } from "./json.ts";
import type { Part } from "./kinds.ts";
import { Merge, sortKeys } from "./merge-values.ts";
import { byRank } from "./rank.ts";

/** Plugins report different values for one path. */
export interface MergeConflict {
  /** "status.topologyPolicy" */
  path: string;
  /** The plugin whose value is published. */
  winner: string;
  /** The plugins that report the same field and rank below `winner`; at least one reports a different value. */
  others: readonly string[];
}

/** The merged reports of all plugins for one object. */
export interface MergedObject {
  kind: GroupVersionKind;
  parts: Record<Part, JsonObject>;
  /** Sorted; at most 100. */
  conflicts: MergeConflict[];
  /** The contributing plugins, sorted. */
  plugins: string[];
}

const MAX_CONFLICTS = 100;

/**
 * Merges the reports of all plugins for one object (a `kindKey`); undefined if no plugin reports it. A pure function of
 * the map's entries, independent of their order. Maps are merged by key and objects deeply. Lists are concatenated,
 * except those of `listKeys`, which are merged by their keys. Of different scalars, the value of the plugin that ranks
 * highest (`byRank`) is used, and a conflict is recorded.
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

import type { GroupVersionKind } from "@nodekeeper/core/kube";
import type { PluginContent } from "./content.ts";
import type { JsonObject } from "./json.ts";
import type { Part } from "./kinds.ts";
import { Merge, sortKeys } from "./merge-values.ts";

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
      const { conflicts } = merged;
      const merge = new Merge((path) => {
        if (conflicts.length < MAX_CONFLICTS) conflicts.push({ path, winner: plugin, others: earlier });
      });
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

import type { PluginRow } from "../groups.ts";

/** A registered reporter without problems. */
export function pluginRow(changed: Partial<PluginRow>): PluginRow {
  return {
    name: "reporter",
    type: "ReporterPlugin",
    state: "registered",
    versions: ["v1alpha1"],
    attempts: 1,
    contentBytes: 0,
    problems: [],
    ...changed,
  };
}

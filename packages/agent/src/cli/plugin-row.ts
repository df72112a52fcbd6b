import type { ApiAnswers } from "@nodekeeper/api/openapi";

/** A plugin's socket, or an in-tree plugin. */
export type PluginRow = ApiAnswers["plugins"][number];

/** Returns a plugin's state in one word. A registered or in-tree plugin is failing if its last call failed. */
export function shownState({ state, error }: PluginRow): string {
  return error && (state === "registered" || state === "in-tree") ? "failing" : state;
}

/** Returns since when the plugin is in the shown state, wall-clock milliseconds. Undefined if unknown. */
export function shownSince(row: PluginRow): number | undefined {
  return shownState(row) === "failing" ? (row.errorSince ?? row.since) : row.since;
}

/** Returns the problem of a plugin in one line. Empty if there is none. */
export function problemOf({ error, errorId, problems }: PluginRow): string {
  if (error) return errorId ? `${errorId}: ${error}` : error;
  if (problems.length === 0) return "";
  return problems.length === 1 ? problems[0]! : `${problems[0]} (and ${problems.length - 1} more)`;
}

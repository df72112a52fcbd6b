import type { ApiAnswers } from "../server/index.ts";

/** A plugin's socket, or a plugin inside the agent. */
export type PluginRow = ApiAnswers["plugins"][number];

/** A plugin's state in a word: a registered or in-tree plugin whose last call failed is failing. */
export function shownState({ state, error }: PluginRow): string {
  return error && (state === "registered" || state === "in-tree") ? "failing" : state;
}

/** Since when it is in the state that is shown, wall milliseconds; undefined where that is not known. */
export function shownSince(row: PluginRow): number | undefined {
  return shownState(row) === "failing" ? (row.errorSince ?? row.since) : row.since;
}

/** What is wrong with a plugin, in a line; empty where nothing is. */
export function problemOf({ error, errorId, problems }: PluginRow): string {
  if (error) return errorId ? `${errorId}: ${error}` : error;
  if (problems.length === 0) return "";
  return problems.length === 1 ? problems[0]! : `${problems[0]} (and ${problems.length - 1} more)`;
}

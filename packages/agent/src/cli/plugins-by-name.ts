import { type PluginRow, problemOf, shownState } from "./plugin-row.ts";

// Most severe state first.
const order = ["failing", "refused", "failed", "lost", "registered", "in-tree", "registering"];

/**
 * Merges rows by socket into one row per plugin. A plugin that serves several types, or restarted on another socket,
 * has several sockets. Sockets without a plugin name remain separate rows.
 */
export function pluginsByName(rows: readonly PluginRow[]): PluginRow[] {
  const groups = Map.groupBy(rows, ({ name, registrationSocket }) => name || registrationSocket || "");
  return [...groups.values()].map(joined);
}

function joined(rows: readonly PluginRow[]): PluginRow {
  const [first, ...others] = [...rows].sort((a, b) => rankOf(a) - rankOf(b));
  if (others.length === 0) return first!;
  const live = rows.filter((row) => isServing(row));
  const shown = live.length > 0 ? live : rows;
  const contents = rows.filter(({ contentBytes }) => contentBytes > 0);
  return {
    ...first!,
    type: [...new Set(shown.map(({ type }) => type))].filter(Boolean).join(","),
    contentBytes: contents.reduce((sum, { contentBytes }) => sum + contentBytes, 0),
    contentAt: contents.map(({ contentAt }) => contentAt).find((at) => at !== undefined),
    problems: [
      ...first!.problems,
      ...others.flatMap((row) => {
        const problem = problemOf(row);
        if (problem === "" && isServing(row)) return [];
        return [`${row.registrationSocket ?? row.type}: ${shownState(row)}${problem && `: ${problem}`}`];
      }),
    ],
  };
}

function isServing({ state }: PluginRow): boolean {
  return state === "registered" || state === "in-tree";
}

function rankOf(row: PluginRow): number {
  const rank = order.indexOf(shownState(row));
  return rank < 0 ? order.length : rank;
}

import type { ApiAnswers } from "@nodekeeper/api/openapi";

/** The plugin of a socket, or an in-tree plugin. */
export type PluginRow = ApiAnswers["plugins"][number];

/** Most severe first. */
export const healths = ["failing", "impaired", "changing", "healthy"] as const;
export type Health = (typeof healths)[number];

/** A plugin of one type: its primary row, and those of its other sockets. */
export interface Plugin {
  /** Unique among plugins, and stable while the plugin exists. */
  key: string;
  row: PluginRow;
  others: PluginRow[];
  health: Health;
}

// Most relevant first: serving now, content retained, attempts in progress.
const precedence = [
  "registered",
  "in-tree",
  "lost",
  "registering",
  "refused",
  "failed",
  "unavailable",
  "superseded",
];

/**
 * Groups rows by plugin, failing first, then by name within each health. Sockets with the same name and type are one
 * plugin, for example after a restart. A socket without a plugin name is a separate plugin.
 */
export function groupPlugins(rows: readonly PluginRow[]): Plugin[] {
  const groups = Map.groupBy(rows, keyOf);
  return [...groups].map(([key, all]) => plugin(key, all)).sort(compare);
}

/** Returns the plugin's name in addresses, or the socket's path if it has no name. */
export function addressName({ name, registrationSocket }: PluginRow): string {
  return name || registrationSocket || "";
}

function keyOf(row: PluginRow): string {
  return row.name ? `${row.type} ${row.name}` : `socket ${row.registrationSocket ?? ""}`;
}

function plugin(key: string, rows: readonly PluginRow[]): Plugin {
  const [row, ...others] = [...rows].sort((a, b) => rankOf(a) - rankOf(b) || (b.since ?? 0) - (a.since ?? 0));
  return { key, row: row!, others, health: healthOf(row!, others) };
}

function rankOf({ state }: PluginRow): number {
  const rank = precedence.indexOf(state);
  return rank < 0 ? precedence.length : rank;
}

function healthOf(row: PluginRow, others: readonly PluginRow[]): Health {
  if (row.error || isBroken(row) || row.state === "unavailable" || row.state === "lost") return "failing";
  if (row.problems.length > 0 || others.some(isBroken)) return "impaired";
  return row.state === "registered" || row.state === "in-tree" ? "healthy" : "changing";
}

/** Whether registration of the socket failed. */
export function isBroken({ state }: PluginRow): boolean {
  return state === "refused" || state === "failed";
}

function compare(a: Plugin, b: Plugin): number {
  const byHealth = healths.indexOf(a.health) - healths.indexOf(b.health);
  const [left, right] = [`${addressName(a.row)} ${a.key}`, `${addressName(b.row)} ${b.key}`];
  return byHealth || (left < right ? -1 : left > right ? 1 : 0);
}

import type { ApiAnswers } from "../../api.ts";

/** A socket's plugin, or a plugin inside the agent. */
export type PluginRow = ApiAnswers["plugins"][number];

/** Failing first. */
export const healths = ["failing", "impaired", "changing", "healthy"] as const;
export type Health = (typeof healths)[number];

/** A plugin of one type: its row that counts, and those of its other sockets. */
export interface Plugin {
  /** Unique among plugins, and the same as long as the plugin is there. */
  key: string;
  row: PluginRow;
  others: PluginRow[];
  health: Health;
}

// The state that matters most first: what serves now, what is kept of it, what it attempts.
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
 * Rows by plugin, failing first and by name within each health. Sockets of the same name and type are one plugin, as of one
 * that was started again; a socket that has not named a plugin is one of its own.
 */
export function groupPlugins(rows: readonly PluginRow[]): Plugin[] {
  const groups = Map.groupBy(rows, keyOf);
  return [...groups].map(([key, all]) => plugin(key, all)).sort(compare);
}

/** In the page's address: the plugin's name, or the socket's path where it has named none. */
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

/** Whether a socket can't be registered. */
export function isBroken({ state }: PluginRow): boolean {
  return state === "refused" || state === "failed";
}

function compare(a: Plugin, b: Plugin): number {
  const byHealth = healths.indexOf(a.health) - healths.indexOf(b.health);
  const [left, right] = [`${addressName(a.row)} ${a.key}`, `${addressName(b.row)} ${b.key}`];
  return byHealth || (left < right ? -1 : left > right ? 1 : 0);
}

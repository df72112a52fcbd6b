/** Represents the earlier agent process in the merge. Not a valid plugin name. */
export const PREDECESSOR = "(earlier agent)";

const noneLost: ReadonlySet<string> = new Set();

/**
 * Sorts plugins by ascending rank. If values for one path differ, that of the highest-ranked plugin is published. The
 * earlier agent process ranks below lost plugins, and these below live ones. Plugins of the same state rank by name.
 */
export function byRank(plugins: Iterable<string>, lost = noneLost): string[] {
  const tier = (plugin: string) => (plugin === PREDECESSOR ? 0 : lost.has(plugin) ? 1 : 2);
  return [...plugins].sort((a, b) => tier(a) - tier(b) || (a < b ? -1 : 1));
}

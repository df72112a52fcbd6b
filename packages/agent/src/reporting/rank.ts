/** Name of the earlier agent process in the merge. It is not a valid plugin name. */
export const PREDECESSOR = "(earlier agent)";

const noneLost: ReadonlySet<string> = new Set();

/**
 * Plugins by rank, the highest last: of different values for one path, that of the plugin with the highest rank is published.
 * An earlier agent process ranks below lost plugins, these rank below live ones, and plugins of one state rank by name.
 */
export function byRank(plugins: Iterable<string>, lost = noneLost): string[] {
  const tier = (plugin: string) => (plugin === PREDECESSOR ? 0 : lost.has(plugin) ? 1 : 2);
  return [...plugins].sort((a, b) => tier(a) - tier(b) || (a < b ? -1 : 1));
}

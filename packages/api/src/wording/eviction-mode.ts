import type { EvictionMode } from "../decide/index.ts";

/** The mode in a word or two. */
export const evictionModes: Readonly<Record<EvictionMode, string>> = {
  live: "live",
  dryRun: "dry run",
  mixed: "partly dry run",
};

/** How eviction is switched on for all plugins; completes "to evict, ...". */
export const howToEvict = "set eviction.dryRunPlugins to [] (Helm: eviction.dryRun=false)";

/** Describes the mode, and how to switch eviction on if it is not live. Names of plugins are not escaped. */
export function evictionModeText(mode: EvictionMode, dryRunPlugins: readonly string[]): string {
  const word = evictionModes[mode];
  if (mode === "live") return `${word}: pods are evicted`;
  if (mode === "dryRun")
    return `${word}: no pod is evicted, and no taint is added or removed; to evict, ${howToEvict}`;
  const names = dryRunText(dryRunPlugins, (name) => name);
  return `${word}: requests of ${names} are only recorded; to evict for all plugins, ${howToEvict}`;
}

/**
 * Returns the plugins that `eviction.dryRunPlugins` names, without "*": those in dry run, and the exceptions that are
 * live. If both "name" and "-name" are listed, the first takes effect, as in the agent.
 */
export function dryRunNames(dryRunPlugins: readonly string[]): { dry: string[]; live: string[] } {
  const isDry = new Map<string, boolean>();
  for (const item of dryRunPlugins) {
    const name = item.replace(/^-/, "");
    if (item !== "*" && !isDry.has(name)) isDry.set(name, item === name);
  }
  const names = [...isDry.keys()];
  return { dry: names.filter((name) => isDry.get(name)), live: names.filter((name) => !isDry.get(name)) };
}

/** Formats the plugins in dry run for a sentence: "a, b", or "all plugins except a, b". */
export function dryRunText(dryRunPlugins: readonly string[], nameText: (name: string) => string): string {
  const { dry, live } = dryRunNames(dryRunPlugins);
  if (!dryRunPlugins.includes("*")) return dry.map(nameText).join(", ");
  return live.length === 0 ? "all plugins" : `all plugins except ${live.map(nameText).join(", ")}`;
}

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

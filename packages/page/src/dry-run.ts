import { isDryRun } from "../../agent/src/eviction/replay/index.ts";

/** The plugins that `eviction.dryRunPlugins` names, without "*": those in dry run, and the exceptions that are live. */
export function dryRunNames(dryRunPlugins: readonly string[]): { dry: string[]; live: string[] } {
  const names = dryRunPlugins.filter((item) => item !== "*").map((item) => item.replace(/^-/, ""));
  const isDry = (name: string) => isDryRun({ dryRunPlugins }, name);
  const distinct = [...new Set(names)];
  return { dry: distinct.filter(isDry), live: distinct.filter((name) => !isDry(name)) };
}

/** The plugins in dry run, for a sentence: "a, b", or "all plugins except a, b". */
export function dryRunText(dryRunPlugins: readonly string[], nameText: (name: string) => string): string {
  const { dry, live } = dryRunNames(dryRunPlugins);
  if (!dryRunPlugins.includes("*")) return dry.map(nameText).join(", ");
  return live.length === 0 ? "all plugins" : `all plugins except ${live.map(nameText).join(", ")}`;
}

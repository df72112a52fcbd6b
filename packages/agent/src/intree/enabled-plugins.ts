import { NodekeeperError } from "@nodekeeper/core/lib";

export interface KnownPlugin {
  readonly name: string;
  /** Whether "*" enables it. Default true. */
  readonly onByDefault?: boolean;
}

/**
 * The plugins that a list of patterns enables, in the order of `known`: "name" enables, "-name" disables, "*" enables
 * every plugin that is on by default. The first pattern that names a plugin decides; "*" decides for those not named.
 * Throws `invalid` for a pattern that names no known plugin. The rule of kube-controller-manager's --controllers.
 */
export function enabledPlugins(
  known: readonly (string | KnownPlugin)[],
  patterns: readonly string[],
): string[] {
  const plugins = known.map((each) => (typeof each === "string" ? { name: each } : each));
  const names = new Set(plugins.map((plugin) => plugin.name));
  for (const pattern of patterns) {
    if (pattern === "*" || names.has(pattern.replace(/^-/, ""))) continue;
    const list = [...names].sort().join(", ");
    throw new NodekeeperError(
      "invalid",
      `${JSON.stringify(pattern.slice(0, 100))} names no in-tree plugin; known are: ${list}`,
    );
  }
  const star = patterns.includes("*");
  return plugins.filter((plugin) => isEnabled(plugin, patterns, star)).map((plugin) => plugin.name);
}

function isEnabled(plugin: KnownPlugin, patterns: readonly string[], star: boolean): boolean {
  const own = patterns.find((pattern) => pattern === plugin.name || pattern === `-${plugin.name}`);
  return own === undefined ? star && (plugin.onByDefault ?? true) : own === plugin.name;
}

import { NodekeeperError } from "@nodekeeper/core/lib";
import { matchesName } from "../eviction/index.ts";

export interface KnownPlugin<Name extends string = string> {
  readonly name: Name;
  /** Whether "*" enables it. Default true. */
  readonly onByDefault?: boolean;
}

/**
 * The plugins enabled by a list of patterns, in the order of `known`: "name" enables and "-name" disables a plugin; "*"
 * enables those that are on by default. The first pattern with a plugin's name takes precedence, then "*". Throws
 * `invalid` for a pattern with an unknown name. The rule of kube-controller-manager's --controllers.
 */
export function enabledPlugins<Name extends string>(
  known: readonly (Name | KnownPlugin<Name>)[],
  patterns: readonly string[],
): Name[] {
  const plugins = known.map((each): KnownPlugin<Name> => (typeof each === "string" ? { name: each } : each));
  const names = new Set<string>(plugins.map((plugin) => plugin.name));
  for (const pattern of patterns) {
    if (pattern === "*" || names.has(pattern.replace(/^-/, ""))) continue;
    const list = [...names].sort().join(", ");
    throw new NodekeeperError(
      "invalid",
      `unknown in-tree plugin ${JSON.stringify(pattern.slice(0, 100))}; known plugins: ${list}`,
      { id: "NK1002" },
    );
  }
  const explicit = patterns.filter((pattern) => pattern !== "*");
  return plugins
    .filter(({ name, onByDefault = true }) => matchesName(onByDefault ? patterns : explicit, name))
    .map(({ name }) => name);
}

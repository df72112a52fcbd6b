import { matchesName } from "@nodekeeper/api/decide";
import { InTreePluginUnknown } from "@nodekeeper/api/errors";

export interface KnownPlugin<Name extends string = string> {
  readonly name: Name;
  /** Whether "*" enables it. Default true. */
  readonly onByDefault?: boolean;
}

/**
 * Returns the plugins enabled by a list of patterns, in the order of `known`: "name" enables and "-name" disables a
 * plugin; "*" enables those that are on by default. The first pattern with a plugin's name takes precedence, then "*".
 * Throws `invalid` for a pattern with an unknown name. Like kube-controller-manager's --controllers.
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
    throw new InTreePluginUnknown({ name: JSON.stringify(pattern.slice(0, 100)), known: list });
  }
  const explicit = patterns.filter((pattern) => pattern !== "*");
  return plugins
    .filter(({ name, onByDefault = true }) => matchesName(onByDefault ? patterns : explicit, name))
    .map(({ name }) => name);
}

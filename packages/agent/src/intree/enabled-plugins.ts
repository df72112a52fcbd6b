import { matchesName } from "@nodekeeper/api/decide";

export interface KnownPlugin<Name extends string = string> {
  readonly name: Name;
  /** Whether "*" enables it. Default true. */
  readonly onByDefault?: boolean;
}

/**
 * Returns the plugins enabled by a list of patterns, in the order of `known`: "name" enables and "-name" disables a
 * plugin; "*" enables those that are on by default. The first pattern with a plugin's name takes precedence, then "*".
 * Like kube-controller-manager's --controllers.
 */
export function enabledPlugins<Name extends string>(
  known: readonly (Name | KnownPlugin<Name>)[],
  patterns: readonly string[],
): Name[] {
  const plugins = known.map((each): KnownPlugin<Name> => (typeof each === "string" ? { name: each } : each));
  const explicit = patterns.filter((pattern) => pattern !== "*");
  return plugins
    .filter(({ name, onByDefault = true }) => matchesName(onByDefault ? patterns : explicit, name))
    .map(({ name }) => name);
}

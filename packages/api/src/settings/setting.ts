import type { Leaf } from "./leaf.ts";
import { isSection, kebabCase, type Section } from "./section.ts";

/** A setting with its name in each source. */
export interface Setting extends Leaf<unknown> {
  /** Path in the YAML file: "reporting.collectInterval". */
  readonly path: string;
  /** Flag without dashes: "reporting-collect-interval". Undefined if the setting has no flag. */
  readonly flagName: string | undefined;
  /** Key of the flag in parsed options: "reportingCollectInterval". Undefined if the setting has no flag. */
  readonly optionKey: string | undefined;
  /** Environment variables: the setting's own, then its aliases. The first one that is set is used. */
  readonly envNames: readonly string[];
  /** Whether a reload applies changes. */
  readonly isLive: boolean;
  /** The section that contains the setting. The path of the root section is empty. */
  readonly section: { readonly path: string; readonly about: string };
}

/** Returns the settings of a section, in order. @param prefix path of the section with a dot; empty for the root */
export function settingsIn(section: Section, prefix: string): Setting[] {
  return Object.entries(section.settings).flatMap(([name, node]) =>
    isSection(node) ? settingsIn(node, `${prefix}${name}.`) : [describe(node, prefix, name, section.about)],
  );
}

function describe(leaf: Leaf<unknown>, prefix: string, name: string, about: string): Setting {
  const path = prefix + name;
  const flagName = leaf.flag === false ? undefined : (leaf.flag ?? kebabCase(path));
  return {
    ...leaf,
    path,
    flagName,
    optionKey: flagName?.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
    envNames: [ownVariable(flagName ?? kebabCase(path)), ...(leaf.aliases ?? [])],
    isLive: leaf.applied === "live",
    section: { path: prefix.slice(0, -1), about },
  };
}

// The rule that docs/configuration.md states.
function ownVariable(name: string): string {
  return `NODEKEEPER_${name.replaceAll("-", "_").toUpperCase()}`;
}

/** Returns the value at a path such as "reporting.collectInterval" in a configuration or a part of one. */
export function valueAt(root: object, path: string): unknown {
  let node: unknown = root;
  for (const name of path.split(".")) node = (node as Record<string, unknown>)[name];
  return node;
}

/** Sets the value at a path. Creates missing sections. */
export function setAt(root: object, path: string, value: unknown): void {
  const names = path.split(".");
  let node = root as Record<string, unknown>;
  for (const name of names.slice(0, -1)) {
    node[name] ??= {};
    node = node[name] as Record<string, unknown>;
  }
  node[names.at(-1)!] = value;
}

import type { Leaf } from "./leaf.ts";

/** A section of settings. Sections can be nested. */
export interface Section {
  readonly about: string;
  readonly settings: Record<string, Leaf<unknown> | Section>;
}

/** Creates a section. Preserves the types of its settings. */
export function section<const S extends Record<string, Leaf<unknown> | Section>>(about: string, settings: S) {
  return { about, settings } as const;
}

/** Marks settings as live: a reload applies them unless they are declared otherwise. */
export function live<const S extends Section["settings"]>(settings: S): S {
  return withDefaults(settings, { applied: "live" });
}

/** Marks settings as live and settable only in the file, to keep `run --help` short. */
export function liveInFile<const S extends Section["settings"]>(settings: S): S {
  return withDefaults(settings, { applied: "live", flag: false });
}

function withDefaults<S extends Section["settings"]>(settings: S, defaults: Partial<Leaf<unknown>>): S {
  const entries = Object.entries(settings).map(([name, node]) => [
    name,
    isSection(node) ? section(node.about, withDefaults(node.settings, defaults)) : { ...defaults, ...node },
  ]);
  return Object.fromEntries(entries) as S;
}

/** Returns whether a node of the schema is a section rather than a setting. */
export function isSection(node: Leaf<unknown> | Section): node is Section {
  return !("isLeaf" in node);
}

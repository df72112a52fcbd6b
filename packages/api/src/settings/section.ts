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

/** Marks settings as live and without a flag, to keep `run --help` short. */
export function liveInFile<const S extends Section["settings"]>(settings: S): S {
  return withDefaults(settings, { applied: "live", flag: false });
}

/** Names the flags of settings after a prefix and the setting, not after the section. */
export function flagsAs<const S extends Record<string, Leaf<unknown>>>(prefix: string, settings: S): S {
  const named = Object.entries(settings).map(([name, leaf]) => [
    name,
    { flag: `${prefix}-${kebabCase(name)}`, ...leaf },
  ]);
  return Object.fromEntries(named) as S;
}

/** Converts "reporting.system.reportCPUFlags" to "reporting-system-report-cpu-flags". */
export function kebabCase(path: string): string {
  return path
    .replace(/([a-z])([A-Z])/g, "$1-$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1-$2")
    .replaceAll(".", "-")
    .toLowerCase();
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

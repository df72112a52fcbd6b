import type { Leaf } from "./leaf.ts";

/** A section of settings. Sections can be nested. */
export interface Section {
  readonly about: string;
  readonly settings: Record<string, Leaf<unknown> | Section>;
}

/** Creates a section; the types of its settings are preserved. */
export function section<const S extends Record<string, Leaf<unknown> | Section>>(about: string, settings: S) {
  return { about, settings } as const;
}

import type { Leaf } from "./leaf.ts";

/** A section of settings; sections nest. */
export interface Section {
  readonly about: string;
  readonly settings: Record<string, Leaf<unknown> | Section>;
}

/** Makes one, with the types of its settings kept. */
export function section<const S extends Record<string, Leaf<unknown> | Section>>(about: string, settings: S) {
  return { about, settings } as const;
}

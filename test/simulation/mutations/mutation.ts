import type { SourceChange } from "../machine/bundle.ts";

/** A defect that is put into the agent, to prove that the rules find defects of this kind. */
export interface Mutation extends SourceChange {
  /** What the agent does wrong with it. */
  name: string;
  /** The promise that is expected to break. */
  promise: string;
  /** A world that breaks the promise by it. It may be another one whenever worlds change. */
  seed: number;
}

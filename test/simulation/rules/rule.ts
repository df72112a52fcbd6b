import type { World } from "../world/world.ts";

/** A promise of the agent. */
export interface Rule {
  /** What is promised, as a sentence. */
  readonly promise: string;
  /** Called after each step. Returns what broke the promise; undefined if nothing did. */
  watch?: (world: World) => () => string | undefined;
  /** Called at rest, when all has been calm for long enough. Returns everything that breaks the promise. */
  atRest?: (world: World) => string[] | Promise<string[]>;
}

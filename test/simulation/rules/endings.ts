import type { World } from "../world/world.ts";

/** What may come after the calm. Each takes as long as the calm or longer. */
const endings = [
  "refusals",
  "endedWatches",
  "expiredWatches",
  "refusedTaints",
  "refusedReports",
  "refusedSlices",
  "oneCondition",
  "idleness",
  "churn",
] as const;
export type Ending = (typeof endings)[number];

// One of so many worlds has an ending.
const EVERY = 4;

/** Returns whether a world ends in this way, which its seed decides. Not if a plugin lies on, which is never at rest. */
export function endsBy({ seed, plugins }: World, ending: Ending): boolean {
  if (plugins.some(({ isLying }) => isLying)) return false;
  return seed % (EVERY * endings.length) === EVERY * endings.indexOf(ending);
}

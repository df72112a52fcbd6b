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

// One of so many worlds has an ending. All of them have a long calm: see `world.ts`.
const EVERY = 4;
// One of so many worlds that end with churn does: they take ten times as long as others.
const CHURNS = 4;

/** Returns whether a world ends in this way, which its seed decides. Not if a plugin lies on, which is never at rest. */
export function endsBy({ seed, plugins }: World, ending: Ending): boolean {
  if (plugins.some(({ isLying }) => isLying)) return false;
  const isIts = seed % (EVERY * endings.length) === EVERY * endings.indexOf(ending);
  return isIts && (ending !== "churn" || Math.floor(seed / (EVERY * endings.length)) % CHURNS === 0);
}

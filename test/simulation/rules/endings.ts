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

// One in this many worlds has an ending. They have the long calm, because `LONG_CALM_EVERY` in plan.ts is the same.
const EVERY = 4;
// One of so many worlds that end with churn does: they take ten times as long as others.
const CHURNS = 4;

/** Returns whether a world has an ending. */
export function hasEnding(world: World): boolean {
  return endings.some((ending) => endsBy(world, ending));
}

/** Worlds without an ending are in shares of one in this many. */
export const SHARES = 3;

/**
 * Returns whether a world is in a share of those without an ending, which its seed decides. Quick worlds are in none, and
 * neither are those with pools beyond the node, which have endings of their own.
 */
export function isInShare(world: World, share: 0 | 1): boolean {
  return !world.isQuick && !world.pools && !hasEnding(world) && world.seed % SHARES === share;
}

/**
 * Returns whether a world ends in this way, which its seed decides. Quick worlds have no ending, and neither have worlds in
 * which a plugin still lies, because they are never at rest.
 */
export function endsBy({ seed, isQuick, plugins }: World, ending: Ending): boolean {
  if (isQuick || plugins.some(({ isLying }) => isLying)) return false;
  const isIts = seed % (EVERY * endings.length) === EVERY * endings.indexOf(ending);
  return isIts && (ending !== "churn" || Math.floor(seed / (EVERY * endings.length)) % CHURNS === 0);
}

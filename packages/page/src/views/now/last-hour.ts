import type { Eviction } from "./group-evictions.ts";

/** The evictions of the last hour, oldest first. */
export interface LastHour {
  items: readonly Eviction[];
  /** Whether there are newer ones, which are not read. */
  isCut: boolean;
}

const HOUR_MS = 3_600_000;
// Bounds the page's memory: up to 1,000 evictions each.
export const MOST_PAGES = 5;

/** Reads pages until the last one, or `MOST_PAGES`. @param read the page after a round; 0 for the first one */
export async function readLastHour(
  read: (after: number) => Promise<{ items: readonly Eviction[]; next?: number | undefined }>,
): Promise<LastHour> {
  const items: Eviction[] = [];
  let after: number | undefined = 0;
  for (let pages = 0; after !== undefined && pages < MOST_PAGES; pages++) {
    const page = await read(after);
    items.push(...page.items);
    after = page.next;
  }
  return { items, isCut: after !== undefined };
}

/** Returns evictions that ended, or were recorded in dry run, in the hour before `now`, and those in progress. */
export function ofLastHour(evictions: readonly Eviction[], now: number): Eviction[] {
  return evictions.filter(
    (eviction) => isInProgress(eviction) || (eviction.outcome?.at ?? eviction.at) >= now - HOUR_MS,
  );
}

/** Returns whether an eviction was started and has no outcome yet. */
export function isInProgress({ dryRun, outcome }: Eviction): boolean {
  return !dryRun && outcome === null;
}

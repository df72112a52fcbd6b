import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { Eviction } from "./group-evictions.ts";

type Page = Pick<ApiAnswers["eviction/evictions"], "coverage" | "next"> & { items: readonly Eviction[] };

/** The evictions of the last hour, oldest first. */
export interface LastHour {
  items: readonly Eviction[];
  /** Whether there are newer ones, which are not read. */
  isCut: boolean;
  /** Of the last page. */
  coverage: Page["coverage"];
}

export const HOUR_MS = 3_600_000;
// Bounds the page's memory: up to 1,000 evictions each.
export const MOST_PAGES = 5;

/** Reads pages until the last one, or `MOST_PAGES`. @param read the page after a round; 0 for the first one */
export async function readLastHour(read: (after: number) => Promise<Page>): Promise<LastHour> {
  let page = await read(0);
  const items = [...page.items];
  for (let pages = 1; page.next !== undefined && pages < MOST_PAGES; pages++) {
    page = await read(page.next);
    items.push(...page.items);
  }
  return { items, isCut: page.next !== undefined, coverage: page.coverage };
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

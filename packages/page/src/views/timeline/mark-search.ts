import { type Mark, neighbourOf } from "./marks.ts";
import type { ReadPage } from "./paged-history.ts";
import { WIDEST_MS } from "./scale.ts";

/**
 * Finds the next or previous mark from a time on. Because marks are read forward, it searches backward in ranges that
 * double.
 * @param widthMs width of the first range searched backward
 * @returns undefined if there is none, or, backward, none within a month
 */
export async function findMark(
  read: ReadPage<Mark>,
  from: number,
  direction: 1 | -1,
  { widthMs, now, signal }: { widthMs: number; now: number; signal: AbortSignal },
): Promise<Mark | undefined> {
  if (direction > 0) {
    const { items } = await read(
      { since: from + 1, until: Math.max(now, from + 1), after: undefined, step: 0 },
      signal,
    );
    return neighbourOf(items, from, 1);
  }
  let [until, width] = [from - 1, widthMs];
  while (until > 0 && from - until < WIDEST_MS) {
    const since = Math.max(until - width, 0);
    let found: Mark | undefined;
    let after: number | undefined;
    do {
      const { items, next } = await read({ since, until, after, step: 0 }, signal);
      // The response also has agent starts after `until` whose unobserved period overlaps the range.
      found = neighbourOf(items, from, -1) ?? found;
      after = next;
    } while (after !== undefined);
    if (found) return found;
    until = since - 1;
    width *= 2;
  }
  return undefined;
}

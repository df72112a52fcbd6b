import type { recordCoverage, ValueOf } from "../openapi/index.ts";

/**
 * Since when records are complete, and their gaps. Wall milliseconds, both inclusive. A record of consequence is one of
 * a round in which a pod was selected, an eviction ended or was withdrawn, or a condition was set or cleared.
 */
export type RecordCoverage = ValueOf<typeof recordCoverage>;

/** Returns the coverage of the records since a time, wall milliseconds. */
export function coverageSince({ oldest, requests, gaps }: RecordCoverage, since: number): RecordCoverage {
  return {
    oldest: oldest === null ? null : Math.max(oldest, since),
    ...(requests === undefined ? {} : { requests: Math.max(requests, since) }),
    gaps: gaps.filter(({ to }) => to >= since),
  };
}

/** The coverage if no records are known. */
export const noCoverage: Readonly<RecordCoverage> = { oldest: null, gaps: [] };

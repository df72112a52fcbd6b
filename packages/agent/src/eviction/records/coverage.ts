/** A span of time of which records of consequence may be missing. Wall milliseconds, both inclusive. */
export interface RecordGap {
  from: number;
  to: number;
  /** For operators: "the state directory could not be written, and the agent was killed before it could". */
  why: string;
}

/**
 * From when and where records are complete. Plain JSON. Records of consequence: a pod was selected, an eviction ended or
 * was withdrawn, a condition was set or cleared.
 */
export interface RecordCoverage {
  /** Wall milliseconds: since then records of consequence are complete, besides the gaps. Null where that is not known. */
  oldest: number | null;
  /** The same of rounds without consequence, and of refusals. Absent where that is not known. */
  requests?: number;
  /** Oldest first. */
  gaps: RecordGap[];
}

/** The coverage of the records since a time, wall milliseconds. */
export function coverageSince({ oldest, requests, gaps }: RecordCoverage, since: number): RecordCoverage {
  return {
    oldest: oldest === null ? null : Math.max(oldest, since),
    ...(requests === undefined ? {} : { requests: Math.max(requests, since) }),
    gaps: gaps.filter(({ to }) => to >= since),
  };
}

/** What is not known to be covered by any record. */
export const noCoverage: Readonly<RecordCoverage> = { oldest: null, gaps: [] };

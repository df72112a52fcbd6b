/** Formats wall-clock milliseconds as in all texts: "2026-11-21T04:00:10.000Z". */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Resolution of times in the API server. */
export const SECOND_MS = 1_000;

import type { RecordCoverage } from "../records/index.ts";
import { timeOf } from "./time.ts";

/**
 * Returns what is missing in the records since a time: "No records before 2026-11-20T09:12:00.000Z are kept.", then a
 * line per gap. Empty if they are complete.
 * @param from wall-clock milliseconds
 */
export function missingLines({ oldest, requests, gaps }: RecordCoverage, from: number): string[] {
  // Since when all records are complete, including those of rounds without effect.
  const since = oldest === null ? null : Math.max(oldest, requests ?? oldest);
  return [
    ...(since !== null && from < since ? [`No records before ${timeOf(since)} are kept.`] : []),
    ...gapLines(gaps, Math.max(from, oldest ?? 0)),
  ];
}

/**
 * Returns how far back the records go, for the end of a page: "Records go back to 2026-11-20T09:12:00.000Z.", and their
 * gaps.
 */
export function coverageLines(coverage: RecordCoverage, recordsSince: number | null): string[] {
  const oldest = coverage.oldest ?? recordsSince;
  if (oldest === null) return [];
  const requests = coverage.requests ?? oldest;
  const apart = requests > oldest ? `; of requests that had no effect to ${timeOf(requests)}` : "";
  return [`Records go back to ${timeOf(oldest)}${apart}.`, ...gapLines(coverage.gaps, oldest)];
}

function gapLines(gaps: RecordCoverage["gaps"], from: number): string[] {
  return gaps
    .filter(({ to }) => to >= from)
    .map((gap) => `Records are missing between ${timeOf(gap.from)} and ${timeOf(gap.to)}: ${gap.why}.`);
}

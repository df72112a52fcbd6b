import type { RecordCoverage } from "../records/coverage.ts";
import { timeOf } from "./time.ts";

/**
 * What is missing in the records from a time on: "No records before 2026-11-20T09:12:00.000Z are kept.", then a
 * line for each gap. Empty if they are complete.
 * @param coverage absent in answers of earlier versions
 * @param from wall milliseconds
 */
export function missingLines(coverage: RecordCoverage | undefined, from: number): string[] {
  if (coverage === undefined) return [];
  const { oldest, gaps } = coverage;
  const since = sinceOf(coverage);
  return [
    ...(since !== null && from < since ? [`No records before ${timeOf(since)} are kept.`] : []),
    ...gaps
      .filter(({ to }) => to >= Math.max(from, oldest ?? 0))
      .map((gap) => `Records are missing between ${timeOf(gap.from)} and ${timeOf(gap.to)}: ${gap.why}.`),
  ];
}

/** How far the records go back, for the end of a page: "Records go back to 2026-11-20T09:12:00.000Z.", and gaps in them. */
export function coverageLines(coverage: RecordCoverage | undefined, recordsSince: number | null): string[] {
  const oldest = coverage?.oldest ?? recordsSince;
  if (oldest === null) return [];
  const requests = coverage?.requests ?? oldest;
  const apart = requests > oldest ? `; of requests that had no effect to ${timeOf(requests)}` : "";
  return [`Records go back to ${timeOf(oldest)}${apart}.`, ...missingLines(coverage, oldest).filter(isGap)];
}

// Since when all records are complete, those without an effect too.
function sinceOf({ oldest, requests }: RecordCoverage): number | null {
  return oldest === null ? null : Math.max(oldest, requests ?? oldest);
}

function isGap(line: string): boolean {
  return line.startsWith("Records are missing");
}

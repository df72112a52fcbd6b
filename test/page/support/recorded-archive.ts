import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A span of an eviction's trace. Times are milliseconds since the epoch. */
export interface RecordedSpan {
  /** ID of its trace. */
  trace: string;
  name: string;
  from: number;
  to: number;
  attributes: Record<string, string>;
  events: { at: number; name: string }[];
}

/** What agents exported: record-archive.ts. */
export interface ArchiveFixture {
  /** The time of the last record, wall milliseconds. */
  at: number;
  /** Rows as VictoriaLogs returned them. */
  rows: Record<string, string>[];
  spans: RecordedSpan[];
}

export const archiveFixture = join(import.meta.dirname, "../fixtures/archive.json");

/** Returns what was recorded. */
export function recordedArchive(): ArchiveFixture {
  return JSON.parse(readFileSync(archiveFixture, "utf8")) as ArchiveFixture;
}

/** Returns the trace to show, the whole first: the one of which the API server took the longest to accept the eviction. */
export function shownTrace({ spans }: ArchiveFixture): [whole: RecordedSpan, ...phases: RecordedSpan[]] {
  const sent = spans.filter(({ name }) => name === "send").sort((a, b) => a.to - a.from - (b.to - b.from));
  const shown = spans.filter(({ trace }) => trace === sent.at(-1)!.trace);
  return shown as [RecordedSpan, ...RecordedSpan[]];
}

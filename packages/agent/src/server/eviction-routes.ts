import {
  type HistoryLine,
  type NowQueries,
  RecentReadings,
  type RecordQueries,
  type RoundRecord,
} from "../eviction/index.ts";
import type { JsonRoute } from "./api.ts";
import { apiRoute } from "./api-route.ts";

/** A page of whole rounds, oldest first. */
export interface RecordPage {
  records: RoundRecord[];
  /** Rounds that were left out, because one alone exceeds the largest answer, 12 MiB. */
  tooLarge: { id: number; bytes: number }[];
  /** The id after which to continue; absent at the end. */
  next?: number;
}

/** A page of the history of the node and its pods. */
export interface HistoryPage {
  lines: HistoryLine[];
  /** The number after which to continue; absent at the end. */
  next?: number;
}

// A round of a thousand pods is about half a megabyte of JSON.
const PAGE_BYTES = 2 * 1024 * 1024;
// Together with a page that is nearly full, the most that a client must be ready to read.
const MOST_RECORD_BYTES = 12 * 1024 * 1024;

/** The routes of the JSON API about what limits evictions now. */
export function evictionNowRoutes(queries: NowQueries): JsonRoute[] {
  return [
    apiRoute("eviction/budgets", () => queries.budgets()),
    apiRoute("eviction/candidates", () => queries.candidates()),
  ];
}

/** The routes of the JSON API that read eviction's records. */
export function evictionRoutes(queries: RecordQueries, readings = new RecentReadings()): JsonRoute[] {
  return [
    apiRoute("eviction/explain", ({ pod }, signal) => queries.explainPod(pod, signal)),
    apiRoute("eviction/node", () => queries.explainNode()),
    apiRoute("eviction/pods", ({ text, limit }) => queries.findPods(text ?? "", limit)),
    apiRoute("eviction/history", ({ since, after }) => queries.historyPage(since, after)),
    apiRoute("eviction/rounds", ({ since, after }, signal) => queries.rounds(since, after, signal)),
    apiRoute("eviction/records", ({ since, after, limit }, signal) =>
      pageOf(queries.records(since, after, signal), limit),
    ),
    apiRoute("eviction/evictions", ({ since, after }, signal) => queries.evictions(since, after, signal)),
    apiRoute("eviction/readings", ({ step, ...span }, signal) =>
      queries.readings({ ...span, stepMs: step }, readings, signal),
    ),
  ];
}

/** As many rounds as fit a page. */
export async function pageOf(
  rounds: AsyncIterable<RoundRecord> | Iterable<RoundRecord>,
  limit: number,
): Promise<RecordPage> {
  const page: RecordPage = { records: [], tooLarge: [] };
  let pageBytes = 0;
  for await (const record of rounds) {
    const bytes = Buffer.byteLength(JSON.stringify(record));
    const last = page.records.at(-1);
    if (bytes > MOST_RECORD_BYTES) {
      page.tooLarge.push({ id: record.id, bytes });
    } else if (last && pageBytes + bytes > PAGE_BYTES) {
      return page;
    } else {
      page.records.push(record);
      pageBytes += bytes;
    }
    page.next = record.id;
    if (page.records.length + page.tooLarge.length >= limit) return page;
  }
  const { next: _end, ...whole } = page;
  return whole;
}

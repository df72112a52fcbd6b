import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { RoundRecord } from "@nodekeeper/api/records";
import { type NowQueries, RecentReadings, type RecordQueries } from "../eviction/index.ts";
import type { JsonRoute } from "./api.ts";
import { apiRoute } from "./api-route.ts";

/** A page of complete rounds, oldest first. Rounds larger than 12 MiB are omitted. */
type RecordPage = ApiAnswers["eviction/records"];

// A round of a thousand pods is about half a megabyte of JSON.
const PAGE_BYTES = 2 * 1024 * 1024;
// The largest record that is sent, and so the largest page: a record that does not fit starts a new page.
const MOST_RECORD_BYTES = 12 * 1024 * 1024;

/** The routes of the JSON API for what limits evictions now. */
export function evictionNowRoutes(queries: NowQueries): JsonRoute[] {
  return [
    apiRoute("eviction/budgets", () => queries.budgets()),
    apiRoute("eviction/candidates", () => queries.candidates()),
    apiRoute("eviction/eligibility", () => queries.eligibility()),
  ];
}

/** The routes of the JSON API that read eviction records. */
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

/** Returns as many rounds as fit in a page. */
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

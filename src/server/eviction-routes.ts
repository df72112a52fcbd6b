import type { RecordQueries, RoundRecord } from "../eviction/index.ts";
import { NodekeeperError } from "../lib/index.ts";
import type { JsonRoute } from "./api.ts";

/** A page of whole rounds, oldest first. */
export interface RecordPage {
  records: RoundRecord[];
  /** The id to go on after; undefined at the end. */
  next: number | undefined;
}

// A round of a thousand pods is about half a megabyte of JSON.
const MOST_PAGE_BYTES = 4 * 1024 * 1024;
const MOST_PAGE_ROUNDS = 100;
const LONGEST_POD = 600;

/** What the agent's HTTP API tells of eviction's records. */
export function evictionRoutes(queries: RecordQueries): JsonRoute[] {
  return [
    {
      path: "eviction/explain",
      summary: "Why a pod was evicted, or was not: ?pod=<namespace>/<name> or ?pod=<uid>.",
      handle: (query, signal) => queries.explainPod(podOf(query), signal),
    },
    {
      path: "eviction/rounds",
      summary: "Rounds in which something happened, a line each: ?since=<wall ms>&after=<id>.",
      handle: (query, signal) => queries.rounds(numberOf(query, "since"), numberOf(query, "after"), signal),
    },
    {
      path: "eviction/records",
      summary: "The same rounds with their whole input and decision, in pages: ?since=<wall ms>&after=<id>.",
      handle: (query, signal) =>
        recordPage(queries, numberOf(query, "since"), numberOf(query, "after"), signal),
    },
  ];
}

async function recordPage(
  queries: RecordQueries,
  since: number,
  after: number,
  signal: AbortSignal,
): Promise<RecordPage> {
  const records: RoundRecord[] = [];
  let bytes = 0;
  for await (const record of queries.records(since, after, signal)) {
    records.push(record);
    bytes += JSON.stringify(record).length;
    if (bytes >= MOST_PAGE_BYTES || records.length >= MOST_PAGE_ROUNDS) {
      return { records, next: record.id };
    }
  }
  return { records, next: undefined };
}

function podOf(query: URLSearchParams): string {
  const pod = query.get("pod") ?? "";
  if (pod !== "" && pod.length <= LONGEST_POD) return pod;
  throw new NodekeeperError("invalid", "the query needs pod=<namespace>/<name> or pod=<uid>");
}

function numberOf(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? "0";
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new NodekeeperError("invalid", `${name} takes a whole number`);
}

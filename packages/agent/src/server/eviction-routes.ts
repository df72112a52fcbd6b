import { NodekeeperError } from "@nodekeeper/core/lib";
import type { HistoryLine, RecordQueries, RoundRecord } from "../eviction/index.ts";
import type { JsonRoute } from "./api.ts";
import { checkParameters, wholeNumber } from "./query.ts";

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
const MOST_PAGE_ROUNDS = 100;
// Two names of the longest, and a slash.
const LONGEST_POD = 2 * 253 + 1;

/** The routes of the JSON API that read eviction's records. */
export function evictionRoutes(queries: RecordQueries): JsonRoute[] {
  return [
    {
      path: "eviction/explain",
      summary: "Why a pod was evicted, or was not: ?pod=<namespace>/<name> or ?pod=<uid>.",
      handle(query, signal) {
        checkParameters(query, ["pod"]);
        return queries.explainPod(podOf(query), signal);
      },
    },
    {
      path: "eviction/node",
      summary: "Conditions and taints that eviction sets: by which plugin, why, since when, until when.",
      async handle(query) {
        checkParameters(query, []);
        return queries.explainNode();
      },
    },
    {
      path: "eviction/history",
      summary: "What happened to the node and to each of its pods, in pages: ?since=<wall ms>&after=<next>.",
      async handle(query): Promise<HistoryPage> {
        checkParameters(query, ["since", "after"]);
        return queries.historyPage(wholeNumber(query, "since"), wholeNumber(query, "after"));
      },
    },
    {
      path: "eviction/rounds",
      summary:
        "Rounds in which something happened, a line each, some at once: ?since=<wall ms>&after=<id of the last one had>.",
      handle(query, signal) {
        checkParameters(query, ["since", "after"]);
        return queries.rounds(wholeNumber(query, "since"), wholeNumber(query, "after"), signal);
      },
    },
    {
      path: "eviction/records",
      summary:
        "The same rounds with their whole input and decision, in pages: ?since=<wall ms>&after=<id>&limit=<1 to 100>.",
      handle(query, signal) {
        checkParameters(query, ["since", "after", "limit"]);
        const limit = wholeNumber(query, "limit", {
          fallback: MOST_PAGE_ROUNDS,
          least: 1,
          most: MOST_PAGE_ROUNDS,
        });
        const [since, after] = [wholeNumber(query, "since"), wholeNumber(query, "after")];
        return pageOf(queries.records(since, after, signal), limit);
      },
    },
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

function podOf(query: URLSearchParams): string {
  const pod = query.get("pod") ?? "";
  const parts = pod.split("/");
  if (pod.length <= LONGEST_POD && parts.length <= 2 && parts.every((part) => part !== "")) return pod;
  throw new NodekeeperError("invalid", "the query needs pod=<namespace>/<name> or pod=<uid>");
}

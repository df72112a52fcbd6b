import { decide } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { RoundRecord, RoundSummary } from "@nodekeeper/api/records";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { evictPod, TestRounds, testPod } from "../eviction/testing/rounds.ts";
import { pageOf } from "./eviction-routes.ts";

type RecordPage = ApiAnswers["eviction/records"];

import { type ServedRecords, serveRecords } from "./testing/serve-records.ts";

// Over HTTP, on real records in SQLite: 120 rounds of which each evicts a pod.
const ROUNDS = 120;
const START = 1_700_000_000_000;
let served: ServedRecords;
let root: string;

beforeAll(async () => {
  served = await serveRecords();
  root = `http://${served.address}/api/v1/eviction`;
  const { records } = served;
  for (let at = 0; at < ROUNDS; at++) records.save(round(records.nextId, `pod-${at}`), []);
});

afterAll(() => served.stop());

function round(id: number, name: string): RoundRecord {
  const rounds = new TestRounds([testPod(name)]);
  rounds.now = START + id * 5_000;
  const input = rounds.input({ forcing: { pods: [evictPod(name, { force: true })] } });
  return { id, input, decision: decide(input) };
}

async function get<T>(path: string): Promise<{ status: number; body: T }> {
  const response = await fetch(`${root}/${path}`);
  return { status: response.status, body: (await response.json()) as T };
}

async function everyPage(query: string): Promise<RecordPage[]> {
  const pages: RecordPage[] = [];
  for (let after: number | undefined = 0; after !== undefined; after = pages.at(-1)!.next) {
    const { status, body } = await get<RecordPage>(`records?${query}&after=${after}`);
    expect({ status, body }).toMatchObject({ status: 200 });
    pages.push(body);
  }
  return pages;
}

const idsOf = (list: readonly { id: number }[]) => list.map(({ id }) => id);
const upTo = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, at) => first + at);

describe("eviction routes", () => {
  it("explain a pod by name and by UID", async () => {
    for (const pod of ["default/pod-3", "pod-3"]) {
      expect(await get(`explain?pod=${encodeURIComponent(pod)}`)).toMatchObject({
        status: 200,
        body: {
          uid: "pod-3",
          rounds: [{ id: 4, victim: { plugin: "forcing" } }],
          recordsSince: START + 5_000,
        },
      });
    }
  });

  it("answer 404 for a pod that nothing is known of", async () => {
    expect(await get("explain?pod=default/absent")).toMatchObject({
      status: 404,
      body: {
        error: { code: "notFound", message: expect.stringContaining("the records go back to 20") },
      },
    });
    const odd = encodeURIComponent("default/'; DROP TABLE eviction_pod; --\u0000\u001b[2J");
    expect((await get(`explain?pod=${odd}`)).status).toBe(404);
  });

  it.each([
    ["explain"],
    ["explain?pod="],
    ["explain?pod=/web"],
    ["explain?pod=shop/"],
    ["explain?pod=shop/web/1"],
    [`explain?pod=${"x".repeat(600)}`],
    ["explain?pod=a&pod=b"],
    ["explain?name=a"],
    ["rounds?since=yesterday"],
    ["rounds?since=-1"],
    ["rounds?since=1e9"],
    ["rounds?after=99999999999999999999"],
    ["rounds?limit=5"],
    ["records?limit=0"],
    ["records?limit=101"],
    ["records?after="],
    ["records?sicne=5"],
  ])("answer 400 to %.60s", async (path) => {
    expect(await get(path)).toMatchObject({ status: 400, body: { error: { code: "invalid" } } });
  });

  it("list rounds from a time, after an id", async () => {
    const { body } = await get<RoundSummary[]>(`rounds?since=${START + 100 * 5_000}&after=115`);
    expect(idsOf(body)).toEqual(upTo(116, 120));
    expect((await get<RoundSummary[]>(`rounds?since=${START + 119 * 5_000}`)).body).toHaveLength(2);
    expect((await get("rounds?after=120")).body).toEqual([]);
  });

  it("give each whole round once, over pages of any size", async () => {
    for (const [limit, count] of [
      [7, 18],
      [100, 2],
      [60, 3],
    ]) {
      const pages = await everyPage(`limit=${limit}`);
      expect(pages).toHaveLength(count!);
      expect(pages.flatMap(({ records }) => idsOf(records))).toEqual(upTo(1, ROUNDS));
    }
    const [first] = await everyPage(`since=${START + 119 * 5_000}`);
    expect(first!.records[0]!.decision).toEqual(round(119, "pod-118").decision);
  });
});

describe("a page of records", () => {
  /** A round of about so many bytes, of characters that take two each. */
  const large = (id: number, bytes: number): RoundRecord => {
    const record = round(id, "web");
    record.input.pods = [testPod("web", { labels: { padding: "é".repeat(bytes / 2) } })];
    return record;
  };

  it("ends before it gets too large", async () => {
    const page = await pageOf([large(1, 3e6), large(2, 3e6), large(3, 3e6)], 100);
    expect(idsOf(page.records)).toEqual([1]);
    expect(page).toMatchObject({ next: 1, tooLarge: [] });
  });

  it("holds one that is larger than a page, and names those no answer can hold", async () => {
    expect(idsOf((await pageOf([large(1, 9e6), large(2, 1_000)], 100)).records)).toEqual([1]);
    const page = await pageOf([large(1, 30e6), large(2, 1_000), large(3, 30e6)], 100);
    expect(idsOf(page.records)).toEqual([2]);
    expect(idsOf(page.tooLarge)).toEqual([1, 3]);
    expect(page.tooLarge[0]!.bytes).toBeGreaterThan(12 * 1024 * 1024);
    expect(page).not.toHaveProperty("next");
    expect(await pageOf([large(1, 30e6), large(2, 1_000)], 1)).toMatchObject({ records: [], next: 1 });
  });
});

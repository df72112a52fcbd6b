import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Marks, type NewMark, SignOfLife, StateDatabase } from "./index.ts";

let directory: string;
let clock: FakeClock;
let database: StateDatabase;
let marks: Marks;

const open = () => {
  database = StateDatabase.open({ directory, clock, log: silentLogger });
  marks = new Marks(database, clock, silentLogger);
};
const reopen = () => {
  database.close();
  open();
};
const page = (changes: Partial<Parameters<Marks["page"]>[0]> = {}) =>
  marks.page({ since: 0, until: Number.MAX_SAFE_INTEGER, after: 0, limit: 10_000, ...changes });
const kinds = () => page().items.map(({ kind }) => kind);
const lost = (plugin: string): NewMark => ({ kind: "pluginLost", title: `${plugin} lost`, plugin });

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-marks-"));
  clock = new FakeClock();
  open();
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

it("keeps marks in their order, with what they are about, over a restart", () => {
  const pod = { uid: "u", namespace: "default", name: "web" };
  const selected: NewMark = { kind: "evictionSelected", title: "t", plugin: "p", pod, round: 7, at: 5 };
  marks.add([selected, lost("p")]);
  const at = clock.now();
  const expected = [
    { id: 1, ...selected },
    { id: 2, at, ...lost("p") },
  ];
  expect(page().items).toEqual(expected);
  reopen();
  expect(page().items).toEqual(expected);
  expect(marks.lastId).toBe(2);
  marks.add([lost("q")]);
  expect(page({ after: 2 }).items).toMatchObject([{ id: 3, plugin: "q" }]);
});

it("answers in pages, of a time", async () => {
  for (const name of ["a", "b", "c", "d", "e"]) {
    marks.add([lost(name)]);
    await clock.step(1_000);
  }
  const [first] = page().items;
  const middle = { since: first!.at + 1_000, until: first!.at + 3_000 };
  const one = page({ ...middle, limit: 2 });
  expect(one).toMatchObject({ items: [{ plugin: "b" }, { plugin: "c" }], next: 3 });
  expect(page({ ...middle, limit: 2, after: one.next! })).toEqual({
    ...{ items: [page().items[3]], oldest: first!.at, gaps: [] },
  });
});

it("of one plugin do not displace those of another of the same kind; since when they are complete is kept", () => {
  marks.add([lost("rare")]);
  const { marks: since } = database.coverage.get();
  clock.jump(5_000);
  for (let at = 0; at < 30; at++) marks.add(Array.from({ length: 50 }, () => lost("often")));
  const { items, oldest } = page();
  expect(items).toHaveLength(1_000);
  expect(items[0]).toMatchObject({ plugin: "rare" });
  expect([since, oldest]).toEqual([1_700_000_000_000, clock.now()]);
});

it("distinguishes a start after a stop from one after SIGKILL", () => {
  marks.addStart("1");
  reopen();
  marks.addStart("1");
  marks.addStop("1");
  reopen();
  marks.addStart("2");
  expect(kinds()).toEqual(["agentStarted", "agentStartedAfterKill", "agentStopped", "agentStarted"]);
});

it("a start has since when no agent ran: the last sign of life of the one before", async () => {
  marks.addStart("1");
  expect(page().items[0]).not.toHaveProperty("unobservedSince");
  await clock.step(60_000);
  // As eviction does after each round.
  const roundAt = clock.now();
  database.connection
    .prepare("INSERT INTO eviction_state (one, state) VALUES (1, ?)")
    .run(JSON.stringify({ at: roundAt }));
  await clock.step(3_600_000);
  reopen();
  marks.addStart("1");
  const [, killed] = page().items;
  expect(killed).toMatchObject({ kind: "agentStartedAfterKill", unobservedSince: roundAt });
  await clock.step(60_000);
  marks.addStop("1");
  const stoppedAt = clock.now();
  await clock.step(60_000);
  reopen();
  marks.addStart("2");
  expect(page().items.at(-1)).toMatchObject({ kind: "agentStarted", unobservedSince: stoppedAt });

  const during = { since: roundAt + 1_000, until: roundAt + 2_000 };
  expect(page(during).items).toEqual([killed]);
  expect(page({ since: killed!.at + 1, until: killed!.at + 2 }).items).toEqual([]);
});

it("a start has the last sign of life of one that had nothing to record", async () => {
  marks.addStart("1");
  const stop = new AbortController();
  const running = new SignOfLife(database, clock).run(stop.signal);
  await clock.step(3_600_000);
  const lastAt = clock.now();
  stop.abort();
  await running;
  await clock.step(7_200_000);
  reopen();
  marks.addStart("1");
  expect(page().items[1]).toMatchObject({ kind: "agentStartedAfterKill", unobservedSince: lastAt });
});

it("a start has no such time where the clock was set back, or the stored state is not readable", async () => {
  database.connection.exec("INSERT INTO eviction_state (one, state) VALUES (1, '{')");
  marks.add([{ kind: "pluginLost", title: "later", at: clock.now() + 3_600_000 }]);
  reopen();
  marks.addStart("1");
  expect(page().items.at(-1)).not.toHaveProperty("unobservedSince");
});

it("keeps the newest 1,000 of each kind, however many there are of another", () => {
  marks.addStart("1");
  marks.add(Array.from({ length: 2_500 }, (_, at) => lost(`p${at}`)));
  const { items } = page();
  expect(items).toHaveLength(1_001);
  expect(items.slice(0, 2)).toMatchObject([{ kind: "agentStarted" }, { plugin: "p1500" }]);
  expect(items.at(-1)).toMatchObject({ plugin: "p2499", id: 2_501 });
});

it("keeps the newest 200 in memory while the database can't be written, and writes them later", () => {
  marks.add([lost("before")]);
  database.connection.exec("PRAGMA query_only = 1");
  for (let at = 0; at < 250; at++) marks.add([lost(`p${at}`)]);
  expect(page().items).toHaveLength(1 + 200);
  database.connection.exec("PRAGMA query_only = 0");
  marks.add([lost("after")]);
  const plugins = page().items.map(({ plugin }) => plugin);
  expect([plugins.length, plugins[1], plugins.at(-1)]).toEqual([202, "p50", "after"]);
  expect(marks.lastId).toBe(page().items.at(-1)!.id);
});

it("adds a mark that is missing, and none that is the last one about its pod", () => {
  const ended = (text: string, uid = "a") =>
    ({ kind: "evictionEnded", title: text, pod: { uid, namespace: "default", name: uid } }) as const;
  marks.add([ended("evicted"), ended("evicted", "b"), ended("not known", "b")]);
  for (const mark of [ended("evicted"), ended("evicted", "b"), ended("evicted", "c")]) marks.addMissing(mark);
  expect(page().items.map(({ pod, title }) => `${pod?.uid} ${title}`)).toEqual([
    "a evicted",
    "b evicted",
    "b not known",
    "b evicted",
    "c evicted",
  ]);
});

it("cuts a title", () => {
  marks.add([{ kind: "pluginRefused", title: "x".repeat(10_000) }]);
  expect(page().items[0]!.title).toHaveLength(500);
});

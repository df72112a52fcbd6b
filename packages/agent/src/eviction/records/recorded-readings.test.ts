import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decide } from "@nodekeeper/api/decide";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, expect, it } from "vitest";
import { EvictionStore, HistoryStore, StateDatabase } from "../../state/index.ts";
import { RecentReadings, type RoundReadings } from "../readings.ts";
import { TestRounds, testPod, testThreshold } from "../testing/rounds.ts";
import { RecordQueries } from "./record-queries.ts";
import { EvictionRecords } from "./records.ts";

const START = 1_700_000_000_000;
const PERIOD = 5_000;
const ROUNDS = 600;
const end = START + ROUNDS * PERIOD;
const { signal } = new AbortController();

let directory: string;
let database: StateDatabase;
let queries: RecordQueries;
let recent: RecentReadings;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-readings-"));
  const common = { clock: new FakeClock(), log: silentLogger };
  database = StateDatabase.open({ directory, ...common });
  const records = new EvictionRecords({
    store: new EvictionStore(database),
    settings: () => ({ maxAge: Number.MAX_SAFE_INTEGER, maxSize: 64 * 1024 * 1024 }),
    ...common,
  });
  queries = new RecordQueries(records, new HistoryStore(database));
  recent = new RecentReadings();
  const rounds = new TestRounds([testPod("a")]);
  for (let at = 0; at < ROUNDS; at++) {
    rounds.now = START + at * PERIOD;
    // Within its grace period, so that each round is recorded.
    const threshold = testThreshold({
      metType: "hard",
      scope: "memory",
      observedValue: at,
      gracePeriodSeconds: 1e9,
    });
    const input = rounds.input({ p: { threshold } });
    records.save({ id: records.nextId, input, decision: decide(input) }, []);
    recent.add(rounds.now, input.plugins);
  }
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

async function pages(changes: object = {}, last = recent): Promise<RoundReadings[][]> {
  const found: RoundReadings[][] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: Awaited<ReturnType<RecordQueries["readings"]>> = await queries.readings(
      { since: 0, until: Number.MAX_SAFE_INTEGER, stepMs: 0, after, ...changes },
      last,
      signal,
    );
    found.push(page.rounds);
    after = page.next;
  }
  return found;
}
const observed = (rounds: readonly RoundReadings[]) => rounds.map(({ readings }) => readings[0]?.observed);
const upTo = (from: number, to: number, by = 1) =>
  Array.from({ length: Math.ceil((to - from) / by) }, (_, at) => from + at * by);

it("continue from the records to those in memory: each round once, in pages of 250 recorded rounds", async () => {
  const found = await pages();
  expect(found.map((page) => page.length)).toEqual([250, 350]);
  expect(observed(found.flat())).toEqual(upTo(0, ROUNDS));
  expect(found[0]![0]).toEqual({
    at: START,
    readings: [
      { plugin: "p", scope: "memory", observed: 0, threshold: 0.8, operator: "greaterThan", met: "hard" },
    ],
  });
  expect(observed((await pages({}, new RecentReadings())).flat())).toEqual(upTo(0, ROUNDS));
});

it("are those of a time", async () => {
  const only = async (from: number, to: number) =>
    observed((await pages({ since: START + from * PERIOD, until: START + to * PERIOD })).flat());
  expect(await only(10, 12)).toEqual([10, 11, 12]);
  expect(await only(478, 482)).toEqual([478, 479, 480, 481, 482]);
  expect(await only(590, 700)).toEqual(upTo(590, ROUNDS));
  expect(await only(700, 800)).toEqual([]);
  expect((await pages({ since: end })).flat()).toEqual([]);
});

it("are the first of each step, so that a long time takes one page", async () => {
  const [page, ...others] = await pages({ stepMs: 10 * PERIOD });
  expect(others).toEqual([]);
  expect(observed(page!)).toEqual(upTo(0, ROUNDS, 10));
});

it("skip a round that can't be read", async () => {
  database.connection.exec("UPDATE eviction_round SET body = x'00' WHERE id = 3");
  expect(observed((await pages()).flat())).toEqual([0, 1, ...upTo(3, ROUNDS)]);
});

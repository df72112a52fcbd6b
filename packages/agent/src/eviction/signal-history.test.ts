import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SignalStore, StateDatabase } from "../state/index.ts";
import type { RoundReadings } from "./readings.ts";
import { SignalHistory } from "./signal-history.ts";

type Reading = RoundReadings["readings"][number];

let directory: string;
let clock: FakeClock;
let database: StateDatabase;
let history: SignalHistory;

const open = (log = silentLogger) => {
  database = StateDatabase.open({ directory, clock, log });
  history = new SignalHistory({ store: new SignalStore(database), clock, log });
};
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-signals-"));
  clock = new FakeClock();
  open();
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

const reading = (plugin: string, observed: number | null, more: Partial<Reading> = {}): Reading => ({
  ...{ plugin, scope: "memory", operator: "greaterThan", observed, threshold: 0.8, met: "none" },
  ...more,
});
const round = async (...readings: Reading[]) => {
  history.add(clock.now(), readings);
  await clock.step(5_000);
};
const minute = async (...readings: Reading[]) => {
  for (let count = 0; count < 12; count++) await round(...readings);
};
const all = { since: 0, until: Number.MAX_SAFE_INTEGER };
const observed = (plugin?: string) =>
  Object.fromEntries(
    history.page({ ...all, plugin }).signals.map((one) => [`${one.plugin} ${one.scope}`, one.observed]),
  );

describe("the history of signals", () => {
  it("has one reading a minute, written with the next, and continues after a restart", async () => {
    const startedAt = clock.now();
    await minute(reading("a", 0.1), reading("b", 5, { unit: "bytes" }));
    await round(reading("a", 0.2));
    const before = history.page(all);
    expect(before).toEqual({
      minutes: [
        { from: startedAt, to: startedAt + 55_000 },
        { from: startedAt + 60_000, to: startedAt + 60_000 },
      ],
      signals: [
        {
          ...{ plugin: "a", scope: "memory", operator: "greaterThan" },
          ...{ observed: [0.1, 0.2], threshold: [0.8, 0.8], met: ["none", "none"] },
        },
        {
          ...{ plugin: "b", scope: "memory", operator: "greaterThan", unit: "bytes" },
          ...{ observed: [5, null], threshold: [0.8, null], met: ["none", null] },
        },
      ],
    });
    history.close();
    database.close();
    await clock.step(600_000);
    open();
    expect(history.page(all)).toEqual(before);
    await round(reading("a", 0.3));
    expect(observed("a")).toEqual({ "a memory": [0.1, 0.2, 0.3] });
    expect(history.page({ since: clock.now() - 5_000, until: clock.now() }).minutes).toHaveLength(1);
  });

  it("loses one minute to SIGKILL", async () => {
    await minute(reading("a", 1));
    await minute(reading("a", 2));
    database.close();
    open();
    expect(observed()).toEqual({ "a memory": [1] });
  });

  it.each<[string, Partial<Reading>[], Partial<Reading>]>([
    ["the largest", [{ observed: 1 }, { observed: 3 }, { observed: 2 }], { observed: 3 }],
    [
      "the smallest, of a threshold from above",
      [
        { observed: 1, operator: "lessThan" },
        { observed: 3, operator: "lessThan" },
      ],
      { observed: 1 },
    ],
    [
      "that which was met, although another value was larger",
      [{ observed: 9 }, { observed: 3, threshold: 2, met: "hard" }, { observed: 8, met: "soft" }],
      { observed: 3, threshold: 2, met: "hard" },
    ],
    [
      "the one farthest beyond its threshold, which changes",
      [
        { observed: 8, threshold: 100 },
        { observed: 5, threshold: 6 },
      ],
      { observed: 5, threshold: 6 },
    ],
    [
      "the one farthest below its threshold, which changes",
      [
        { observed: 1, threshold: 0.5, operator: "lessThan" },
        { observed: 2, threshold: 1.9, operator: "lessThan" },
      ],
      { observed: 2, threshold: 1.9 },
    ],
    ["a value rather than none", [{ observed: null }, { observed: 0 }, { observed: null }], { observed: 0 }],
  ])("keeps of a minute %s", async (_, readings, kept) => {
    for (const one of readings) await round(reading("a", 0, one));
    const { observed: values, threshold, met } = history.page(all).signals[0]!;
    expect({ observed: values[0], threshold: threshold[0], met: met[0] }).toMatchObject(kept);
  });

  it("is a ring of 24 hours in a bounded file, also where the wall clock steps", async () => {
    const names = Array.from({ length: 70 }, (_, at) => `plugin-${at}.example.com`);
    const readings = (value: number) =>
      names.map((name) => reading(name, value + 1 / 3, { threshold: 1 / 7 }));
    for (let count = 0; count < 1_500; count++) {
      history.add(clock.now(), readings(count));
      await clock.step(60_000);
      if (count === 700) clock.jump(-3_600_000);
    }
    const { minutes, signals } = history.page(all);
    expect([minutes.length, signals.length]).toEqual([1_440, 64]);
    expect(signals[0]!.observed.slice(-2)).toEqual([1_498 + 1 / 3, 1_499 + 1 / 3]);
    database.connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    expect(statSync(join(directory, "nodekeeper.db")).size).toBeLessThan(8 * 2 ** 20);
  });

  it.each([-3_600_000, 3_600_000])(
    "has a minute of its true length if the wall clock steps by %d ms",
    async (by) => {
      const from = clock.now();
      await round(reading("a", 1));
      clock.jump(by);
      await round(reading("a", 2));
      for (let count = 2; count < 12; count++) await round(reading("a", 3));
      const next = clock.now();
      await round(reading("a", 4));
      expect(history.page(all).minutes).toEqual([
        { from, to: from + 55_000 },
        { from: next, to: next },
      ]);
    },
  );

  it("is written once a minute, and nothing without rounds", async () => {
    const commits = () =>
      Number(database.connection.prepare("SELECT commits FROM continuity").get()!.commits);
    const before = commits();
    for (let count = 0; count < 10; count++) await minute(reading("a", 1));
    expect(commits() - before).toBe(9);
    await clock.step(3_600_000);
    expect(commits() - before).toBe(9);
  });

  it("of a plugin that names another signal each time displaces its own alone", async () => {
    await minute(reading("steady", 1));
    for (let count = 0; count < 100; count++) {
      history.add(clock.now(), [reading("steady", 1), reading("odd", count, { scope: `scope-${count}` })]);
      await clock.step(60_000);
    }
    expect(Object.keys(observed("odd"))).toEqual(
      Array.from({ length: 8 }, (_, at) => `odd scope-${92 + at}`),
    );
    expect(observed("steady")["steady memory"]).not.toContain(null);
  });

  it("omits readings in an earlier unit, or against a threshold of the other direction", async () => {
    await minute(reading("a", 5_000, { unit: "bytes" }));
    await minute(reading("a", 5, { unit: "pages" }));
    await round(reading("a", 6, { unit: "pages", operator: "lessThan" }));
    const [signal, ...others] = history.page(all).signals;
    expect(signal).toMatchObject({ unit: "pages", operator: "lessThan", observed: [null, null, 6] });
    expect(others).toEqual([]);
  });

  it("gives the place of a signal that is no longer reported to a new one, and none to more than there are", async () => {
    const readings = Array.from({ length: 64 }, (_, at) => reading(`p-${at}`, at));
    await minute(...readings, reading("late", 1));
    expect(observed("late")).toEqual({});
    await minute(...readings.slice(1), reading("late", 2));
    expect(Object.keys(observed("late"))).toEqual(["late memory"]);
    expect(observed("p-0")).toEqual({});
    history.close();
    database.close();
    open();
    expect(observed("p-0")).toEqual({});
    expect(history.page(all).signals).toHaveLength(64);
  });

  it("of 64 signals is not lost to one that comes back, whatever the order of a round", async () => {
    const others = Array.from({ length: 64 }, (_, at) => reading(`p-${at}`, at));
    await minute(...others);
    await minute(reading("first", 1), ...others);
    history.close();
    database.close();
    open();
    await minute(...others.slice(0, 32));
    await minute(reading("first", 1), ...others);
    expect(observed("first")).toEqual({});
    expect(history.page(all).signals.map(({ observed }) => observed.length)).toEqual(Array(64).fill(4));
    expect(observed("p-63")["p-63 memory"]).toEqual([63, 63, null, 63]);
  });

  it("is kept in memory while the database can't be written, and written once it can", async () => {
    database.connection.exec("PRAGMA query_only = ON");
    for (let count = 0; count < 100; count++) await minute(reading("a", count));
    expect(observed()["a memory"]).toHaveLength(61);
    database.connection.exec("PRAGMA query_only = OFF");
    await minute(reading("a", 100));
    database.close();
    open();
    expect(observed()["a memory"]!.at(-1)).toBe(99);
  });

  it("of which the names are lost gives no reading to another signal", async () => {
    await minute(reading("a", 1));
    history.close();
    database.connection.exec("DROP TABLE signal");
    database.close();
    open();
    await round(reading("b", 2));
    expect(observed()).toEqual({ "b memory": [null, 2] });
  });

  it("of which rows are damaged has the others, and says what was lost", async () => {
    for (let count = 0; count < 4; count++) await minute(reading("a", count));
    history.close();
    database.connection.exec(`
      UPDATE signal_minute SET readings = '[[1, 0.5' WHERE id = 2;
      UPDATE signal_minute SET readings = '[7, [1], ["1", 2, 3, "none"], null]' WHERE id = 3`);
    database.close();
    const lines: Record<string, unknown>[] = [];
    const log = createLogger("error", { write: (line) => lines.push(JSON.parse(line)) });
    open(log);
    expect(lines).toMatchObject([{ errorId: "NK1108", damage: [{ table: "signal_minute", lost: "1 row" }] }]);
    expect(observed()).toEqual({ "a memory": [0, null, 3] });
    await round(reading("a", 4));
    expect(observed()).toEqual({ "a memory": [0, null, 3, 4] });
  });
});

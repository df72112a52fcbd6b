import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { FakeClock, readBootTime, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSchema } from "./definitions.ts";
import { EvictionStore, StateCopy, StateDatabase } from "./index.ts";
import { RecordCoverage } from "./record-coverage.ts";

let root: string;
let directory: string;
let clock: FakeClock;
let database: StateDatabase;

const open = (bootId = "boot") => StateDatabase.open({ directory, clock, log: silentLogger, bootId });
const save = () =>
  new EvictionStore(database).save({ state: "{}", steps: [] }, { maxAgeMs: 1e12, maxBytes: 1e9 });
/** Opens a copy of what the agent has on its disk now: what one that is killed leaves behind. */
function kill(bootId = "boot"): void {
  const left = mkdtempSync(join(root, "left-"));
  cpSync(directory, left, { recursive: true, preserveTimestamps: true });
  database.close();
  directory = left;
  database = open(bootId);
}
const marker = () => readFileSync(join(directory, "nodekeeper.gap"), "utf8");

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "nk-coverage-"));
  directory = join(root, "state");
  clock = new FakeClock();
  database = open();
});
afterEach(() => {
  database.close();
  rmSync(root, { recursive: true });
});

describe("the coverage of records", () => {
  it("begins with the database, and continues over a restart and a kill", async () => {
    const since = clock.now();
    await clock.step(5_000);
    save();
    database.close();
    await clock.step(3_600_000);
    database = open();
    expect(database.coverage.get()).toMatchObject({ since, gaps: [] });
    database.showAlive(clock.now());
    save();
    await clock.step(30_000);
    kill();
    expect(database.coverage.get()).toMatchObject({ since, gaps: [] });
  });

  it("has a gap where records could not be written until the agent was killed", async () => {
    await clock.step(5_000);
    const from = clock.now();
    database.coverage.interrupted(from);
    await clock.step(5_000);
    database.coverage.interrupted(clock.now());
    kill();
    const why = "the state directory could not be written, and the agent ended before it could";
    const gaps = [{ from, to: clock.now(), why }];
    expect(database.coverage.get()).toMatchObject({ gaps });
    // It is stored: not found again at the next start.
    await clock.step(1_000);
    database.showAlive(clock.now());
    kill();
    expect(database.coverage.get()).toMatchObject({ gaps });
  });

  it("has none where everything was written in the end", async () => {
    database.coverage.interrupted(clock.now());
    const length = marker().length;
    database.coverage.complete();
    expect(marker()).toHaveLength(length);
    kill();
    expect(database.coverage.get().gaps).toEqual([]);
  });

  it("has a gap where a killed agent had left no sign of life for long: its disk may have been read-only", async () => {
    const from = clock.now();
    database.showAlive(from);
    save();
    await clock.step(100_000);
    kill();
    expect(database.coverage.get().gaps).toMatchObject([
      { from, to: clock.now(), why: expect.stringContaining("no sign of life") },
    ]);
  });

  it("has a gap after the last write where the machine went down", async () => {
    save();
    const from = clock.now();
    await clock.step(20_000);
    kill("next boot");
    expect(database.coverage.get().gaps).toMatchObject([{ from, to: clock.now() }]);
  });

  it("has the gap after the last write where the clock is behind after the machine went down", async () => {
    await clock.step(7_200_000);
    save();
    const from = clock.now();
    await clock.step(20_000);
    database.showAlive(clock.now());
    const aliveAt = clock.now();
    clock.jump(-7_000_000);
    kill("next boot");
    expect(database.coverage.get().gaps).toMatchObject([{ from, to: aliveAt + 90_000 }]);
    expect(database.coverage.hasLostWrites(aliveAt)).toBe(true);
  });

  it("has the gap of what a killed agent could not write, though the clock was set back", async () => {
    await clock.step(7_200_000);
    const from = clock.now();
    database.coverage.interrupted(from);
    await clock.step(20_000);
    database.showAlive(clock.now());
    const aliveAt = clock.now();
    clock.jump(-7_000_000);
    kill();
    expect(database.coverage.get().gaps).toMatchObject([{ from, to: aliveAt + 90_000 }]);
  });

  it("has a gap since the database was created where the machine went down before any record was kept", async () => {
    const from = clock.now();
    await clock.step(20_000);
    kill("next boot");
    expect(database.coverage.get()).toMatchObject({ since: from, gaps: [{ from, to: clock.now() }] });
  });

  it("has a gap at its beginning where all commits of an earlier agent were lost", () => {
    const left = mkdtempSync(join(root, "left-"));
    // What the file system has of a file and its log that were never synced.
    for (const name of ["nodekeeper.db", "nodekeeper.db-wal"]) writeFileSync(join(left, name), "");
    database.close();
    directory = left;
    database = open("next boot");
    const since = clock.now();
    expect(database.coverage.get()).toMatchObject({ since, gaps: [{ from: since, to: since }] });
  });

  it("has no gap at the very first start, also of a database in memory, which may lack commits of an earlier one", () => {
    expect(database.coverage.get().gaps).toEqual([]);
    const connection = new DatabaseSync(":memory:");
    createSchema(connection);
    const coverage = new RecordCoverage(connection, undefined, clock);
    const first = { unwrittenSince: undefined, savedAt: undefined, aliveAt: undefined, wasOpen: false };
    coverage.start({ ...first, mayHaveLostCommits: true });
    expect(coverage.get().gaps).toEqual([]);
    connection.close();
  });

  it("of a copy has the gap of an agent that still can't write, and leaves its directory alone", async () => {
    database.close();
    // A copy is opened in the machine's own boot.
    database = open(readBootTime()?.id);
    const from = clock.now();
    database.coverage.interrupted(from);
    await clock.step(500_000);
    const before = marker();
    const copy = await StateCopy.of(directory, clock);
    expect(copy.database.coverage.get().gaps).toMatchObject([{ from, to: clock.now() }]);
    copy.close();
    expect(marker()).toBe(before);
  });

  it("is stored with the records that are trimmed, in no transaction of its own, and again if that one failed", async () => {
    await clock.step(5_000);
    const statements: string[] = [];
    const { connection } = database;
    const exec = connection.exec.bind(connection);
    connection.exec = (sql) => {
      statements.push(sql);
      exec(sql);
    };
    const trim = (at: number) => database.transaction(() => database.coverage.trimmed("since", at));
    trim(clock.now() - 3_000);
    database.coverage.complete();
    expect(statements.filter((sql) => sql.startsWith("BEGIN"))).toHaveLength(1);
    const fail = () =>
      database.transaction(() => {
        database.coverage.trimmed("since", clock.now() - 2_000);
        throw new Error("disk full");
      });
    expect(fail).toThrow("disk full");
    // The same records are deleted by the next transaction.
    trim(clock.now() - 2_000);
    database.coverage.complete();
    const { since } = database.coverage.get();
    kill();
    expect(database.coverage.get().since).toBe(since);
  });

  it("forgets no gap: beyond the newest 50 nothing counts as complete", () => {
    const { since } = database.coverage.get();
    for (let at = 0; at < 60; at++)
      database.coverage.addGap({ from: since + at * 10, to: since + at * 10 + 5, why: "w" });
    const { gaps, since: later } = database.coverage.get();
    expect(gaps).toHaveLength(50);
    expect(later).toBe(since + 95);
  });
});

describe("the age of records", () => {
  it("continues by the monotonic clock, and over a restart by no more than what is verified", async () => {
    await clock.step(7_000);
    clock.jump(1e12);
    expect(database.age.now()).toBe(7_000);
    save();
    database.close();
    database = open();
    // The machine's uptime has hardly moved.
    expect(database.age.now()).toBeGreaterThanOrEqual(7_000);
    expect(database.age.now()).toBeLessThan(600_000);
  });
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, FakeClock } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Backlog, PluginNameStore, StateDatabase, WriteBehind } from "./index.ts";

let directory: string;
let clock: FakeClock;
let database: StateDatabase;
let lines: { level: string; msg: string; errorId?: string }[];
let failures: boolean[];
let waiting: Backlog<string>;
let writes: WriteBehind;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-writes-"));
  clock = new FakeClock();
  lines = [];
  failures = [];
  waiting = new Backlog(3);
  const log = createLogger("info", { write: (line: string) => void lines.push(JSON.parse(line)) });
  database = StateDatabase.open({ directory, clock, log });
  const store = new PluginNameStore(database);
  writes = new WriteBehind({
    what: "names",
    write: () => {
      database.transaction(() => {
        for (const name of waiting.items) store.save({ type: "T", name: name.padEnd(5_000, "x"), uid: 1 });
      });
      waiting.clear();
    },
    onFailure: (_error, isFirst) => {
      failures.push(isFirst);
      waiting.bound();
    },
    clock,
    log,
  });
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

const stored = () => new PluginNameStore(database).names().map(({ name }) => name.replace(/x+$/, ""));
const faults = {
  "a full disk": ["PRAGMA max_page_count = 1", "PRAGMA max_page_count = 100000"],
  "a read-only disk": ["PRAGMA query_only = 1", "PRAGMA query_only = 0"],
} as const;

describe.for(["a full disk", "a read-only disk"] as const)("%s", (fault) => {
  const [begin, end] = faults[fault];

  it("keeps what it refuses in order, up to the bound, and writes it after the recovery", async () => {
    database.connection.exec(begin);
    for (const name of ["a", "b", "c", "d", "e"]) {
      waiting.add(name);
      expect(writes.flush()).toBe(false);
    }
    expect(waiting.items).toEqual(["c", "d", "e"]);
    expect(writes.lastError).toBeDefined();
    await clock.step(11_000);
    expect(failures).toEqual([true, ...Array(6).fill(false)]);
    database.connection.exec(end);
    await clock.step(5_000);
    expect([stored(), waiting.items, writes.lastError, writes.isPending]).toEqual([
      ["c", "d", "e"],
      [],
      undefined,
      false,
    ]);
  });

  it("is logged once, and so is the recovery; the next failure is logged again", async () => {
    for (const name of ["a", "b"]) {
      database.connection.exec(begin);
      waiting.add(name);
      writes.flush();
      await clock.step(20_000);
      database.connection.exec(end);
      await clock.step(5_000);
    }
    const failed = { level: "error", errorId: "NK1105", msg: "failed to write names: it is kept in memory" };
    const recovered = { level: "info", msg: "names can be written again" };
    expect(lines).toMatchObject([failed, recovered, failed, recovered]);
  });

  it("is tried a last time at the end, and not again", async () => {
    database.connection.exec(begin);
    waiting.add("a");
    writes.flush();
    writes.close();
    expect(failures).toHaveLength(2);
    await clock.step(60_000);
    expect(failures).toHaveLength(2);
    database.connection.exec(end);
    writes.soon(0);
    await clock.step(1_000);
    expect(stored()).toEqual([]);
  });
});

it("combines changes until they are due, and writes at the end what is not due yet", async () => {
  waiting.add("a");
  writes.soon(1_000);
  waiting.add("b");
  writes.soon(10);
  await clock.step(900);
  expect(stored()).toEqual([]);
  await clock.step(100);
  expect(stored()).toEqual(["a", "b"]);
  waiting.add("c");
  writes.soon(1_000);
  writes.close();
  expect(stored()).toEqual(["a", "b", "c"]);
});

describe("a bounded backlog", () => {
  it("drops from the lowest rank, of the group with the most items the oldest", () => {
    const items = new Backlog<string>(4, (item) => ({ rank: Number(item[0]), groups: [item[1]!] }));
    items.add("1a1", "0b1", "0a1", "0a2", "1a2", "0a3");
    expect(items.bound()).toEqual(["0a1", "0a2"]);
    expect(items.items).toEqual(["1a1", "0b1", "1a2", "0a3"]);
    items.add("1b1", "1b2", "1a3");
    expect(items.bound()).toEqual(["0b1", "0a3", "1a1"]);
  });
});

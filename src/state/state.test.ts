import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeClock, silentLogger } from "../lib/index.ts";
import { ReporterStore, StateDatabase } from "./index.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-state-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const open = () => StateDatabase.open({ directory, clock: new FakeClock(), log: silentLogger });

describe("StateDatabase", () => {
  it("keeps contents and published parts over a reopening", () => {
    const first = open();
    const store = new ReporterStore(first);
    store.saveContents(
      [
        { plugin: "a", content: new Uint8Array([1, 2]), updatedAt: 5, stoppedAt: undefined },
        { plugin: "b", content: new Uint8Array(), updatedAt: 6, stoppedAt: 7 },
      ],
      [],
    );
    store.saveContents([], ["b"]);
    store.savePublished({ object: "v1/Node", part: "main", body: "{}", at: 9 });
    store.saveStandIns("v1/Node", "main", new Map([["a", new Uint8Array([1])]]));
    store.saveStandIns("v1/Node", "status", new Map([["a", new Uint8Array([2])]]));
    store.saveStandIns("v1/Node", "main", new Map([["b", new Uint8Array([3])]]));
    first.close();

    expect(first.isNew).toBe(true);
    const second = open();
    expect(second.isNew).toBe(false);
    const again = new ReporterStore(second);
    expect(again.contents()).toEqual([
      { plugin: "a", content: new Uint8Array([1, 2]), updatedAt: 5, stoppedAt: undefined },
    ]);
    expect(again.published()).toEqual([{ object: "v1/Node", part: "main", body: "{}", at: 9 }]);
    expect(again.standIns()).toEqual([
      { object: "v1/Node", part: "main", plugin: "b", content: new Uint8Array([3]) },
      { object: "v1/Node", part: "status", plugin: "a", content: new Uint8Array([2]) },
    ]);
  });

  it("is readable by its owner alone, the write-ahead log of a new file too", () => {
    const database = open();
    const modes = readdirSync(directory).map((name) => [
      name,
      (statSync(join(directory, name)).mode & 0o777).toString(8),
    ]);
    database.close();
    expect(Object.fromEntries(modes)).toEqual({
      "nodekeeper.db": "600",
      "nodekeeper.db-shm": "600",
      "nodekeeper.db-wal": "600",
    });
  });

  it("says when commits may have been lost with the power", () => {
    const openOn = (folder: string, bootId: string) =>
      StateDatabase.open({ directory: folder, clock: new FakeClock(), log: silentLogger, bootId });
    // A copy of the files of an agent that runs is what one that is killed leaves behind.
    const leftBehind = (name: string) => {
      const folder = join(directory, name);
      cpSync(join(directory, "live"), folder, { recursive: true });
      return folder;
    };
    const live = openOn(join(directory, "live"), "boot-1");
    expect(live.mayHaveLostCommits).toBe(false);
    new ReporterStore(live).savePublished({ object: "v1/Node", part: "main", body: "{}", at: 9 });
    const killed = openOn(leftBehind("killed"), "boot-1");
    expect(killed.mayHaveLostCommits).toBe(false);
    killed.close();
    const powerCut = openOn(leftBehind("power-cut"), "boot-2");
    expect(powerCut.mayHaveLostCommits).toBe(true);
    powerCut.close();
    expect(openOn(join(directory, "power-cut"), "boot-3").mayHaveLostCommits).toBe(false);
    live.close();
    expect(openOn(join(directory, "live"), "boot-2").mayHaveLostCommits).toBe(false);
  });

  it.each([
    ["garbage", () => Buffer.alloc(8192, "not a database ")],
    ["a damaged page", () => damagedDatabase()],
  ])("sets %s aside and starts anew", (_, bytes) => {
    writeFileSync(join(directory, "nodekeeper.db"), bytes());
    const database = open();
    expect(new ReporterStore(database).contents()).toEqual([]);
    expect(database.setAside).toMatch(/nodekeeper\.db\.corrupt-2023/);
    database.close();
    expect(readdirSync(directory).filter((name) => /corrupt-.*Z$/.test(name))).toHaveLength(1);
    expect(open().setAside).toBeUndefined();
  });

  it("refuses a file of a newer agent, and leaves it alone", () => {
    open().close();
    const raw = new DatabaseSync(join(directory, "nodekeeper.db"));
    raw.exec("PRAGMA user_version = 99");
    raw.close();
    expect(open).toThrow(/newer nodekeeper \(schema 99/);
    expect(readdirSync(directory)).not.toContainEqual(expect.stringContaining("corrupt"));
  });

  it("says so when the directory can't be made", () => {
    writeFileSync(join(directory, "file"), "");
    const options = {
      directory: join(directory, "file", "state"),
      clock: new FakeClock(),
      log: silentLogger,
    };
    expect(() => StateDatabase.open(options)).toThrow(/state directory .* can't be made/);
  });

  it("keeps the old contents when the disk is full", () => {
    const database = open();
    const store = new ReporterStore(database);
    store.saveContents(
      [{ plugin: "a", content: new Uint8Array(10), updatedAt: 1, stoppedAt: undefined }],
      [],
    );
    // SQLite answers SQLITE_FULL at its page limit just as on a full disk.
    const { page_count: pages } = database.connection.prepare("PRAGMA page_count").get() as {
      page_count: number;
    };
    database.connection.exec(`PRAGMA max_page_count = ${pages}`);
    const big = { plugin: "a", content: new Uint8Array(1 << 20), updatedAt: 2, stoppedAt: undefined };
    expect(() => store.saveContents([big], [])).toThrow(/full/);
    expect(store.contents()[0]?.updatedAt).toBe(1);
    database.connection.exec("PRAGMA max_page_count = 100000");
    store.saveContents([big], []);
    expect(store.contents()[0]?.updatedAt).toBe(2);
  });
});

function damagedDatabase(): Buffer {
  const scratch = mkdtempSync(join(tmpdir(), "nodekeeper-damaged-"));
  const database = StateDatabase.open({ directory: scratch, clock: new FakeClock(), log: silentLogger });
  new ReporterStore(database).saveContents(
    Array.from({ length: 50 }, (_, at) => ({
      plugin: `plugin-${at}`,
      content: new Uint8Array(500),
      updatedAt: at,
      stoppedAt: undefined,
    })),
    [],
  );
  database.close();
  const bytes = readFileSync(join(scratch, "nodekeeper.db"));
  rmSync(scratch, { recursive: true });
  return bytes.fill(0xaa, 4096, 12_288);
}

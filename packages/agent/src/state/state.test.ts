import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createLogger, FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ReporterStore, StateDatabase } from "./index.ts";
import { openInMemory } from "./open-file.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nodekeeper-state-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const open = () => StateDatabase.open({ directory, clock: new FakeClock(), log: silentLogger });

describe("StateDatabase", () => {
  it("keeps contents and last known good values over a reopening", () => {
    const first = open();
    const store = new ReporterStore(first);
    store.saveContents(
      [
        { plugin: "a", content: new Uint8Array([1, 2]), updatedAt: 5, stoppedAt: null },
        { plugin: "b", content: new Uint8Array(), updatedAt: 6, stoppedAt: 7 },
      ],
      [],
    );
    store.saveContents([], ["b"]);
    store.saveLastGood("v1/Node", "main", new Map([["a", new Uint8Array([1])]]));
    store.saveLastGood("v1/Node", "status", new Map([["a", new Uint8Array([2])]]));
    store.saveLastGood("v1/Node", "main", new Map([["b", new Uint8Array([3])]]));
    first.close();

    const second = open();
    const again = new ReporterStore(second);
    expect(again.contents()).toEqual([
      { plugin: "a", content: new Uint8Array([1, 2]), updatedAt: 5, stoppedAt: null },
    ]);
    expect(again.lastGood()).toEqual([
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
      "nodekeeper.gap": "600",
      "nodekeeper.lock": "600",
      "nodekeeper.pid": "600",
    });
  });

  it("reports when commits may have been lost with the power", () => {
    const openOn = (root: string, bootId: string) =>
      StateDatabase.open({ directory: root, clock: new FakeClock(), log: silentLogger, bootId });
    // A copy of the files of an agent that runs is what one that is killed leaves behind.
    const leftBehind = (name: string) => {
      const root = join(directory, name);
      cpSync(join(directory, "live"), root, { recursive: true });
      return root;
    };
    const live = openOn(join(directory, "live"), "boot-1");
    expect(live.mayHaveLostCommits).toBe(false);
    new ReporterStore(live).saveLastGood("v1/Node", "main", new Map([["a", new Uint8Array([1])]]));
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
    ["garbage", () => Buffer.alloc(8192, "not a database "), true],
    ["a damaged page", () => damagedDatabase(), false],
  ])("sets %s aside and starts with what can be read of it", (_, bytes, isUnreadable) => {
    writeFileSync(join(directory, "nodekeeper.db"), bytes());
    const database = open();
    expect(new ReporterStore(database).contents()).toEqual([]);
    expect(database.setAside !== undefined).toBe(isUnreadable);
    database.close();
    expect(readdirSync(directory).filter((name) => /corrupt-.*Z$/.test(name))).toHaveLength(1);
    expect(open().setAside).toBeUndefined();
  });

  it("of a newer agent is set aside whole, and the newer agent can continue with either file", () => {
    const content = { plugin: "a", content: new Uint8Array([1]), updatedAt: 5, stoppedAt: null };
    const path = join(directory, "nodekeeper.db");
    const newer = open();
    new ReporterStore(newer).saveContents([content], []);
    const known = newer.connection.prepare("PRAGMA user_version").get()!.user_version as number;
    newer.connection.exec("CREATE TABLE of_the_future (x TEXT) STRICT; PRAGMA user_version = 99");
    newer.close();

    const rolledBack = open();
    expect(rolledBack.setAside).toMatch(/nodekeeper\.db\.schema-99-2023/);
    expect(new ReporterStore(rolledBack).contents()).toEqual([]);
    new ReporterStore(rolledBack).saveContents([{ ...content, plugin: "b" }], []);
    rolledBack.close();

    // Forward again: the file of the time between is one that a newer agent migrates.
    const between = new DatabaseSync(path);
    expect(between.prepare("PRAGMA user_version").get()).toEqual({ user_version: known });
    between.close();
    // Or, after the operator has moved the older one back, it has all that it had.
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
    renameSync(rolledBack.setAside!, path);
    const raw = new DatabaseSync(path);
    expect(raw.prepare("SELECT plugin FROM reporter_content").all()).toEqual([{ plugin: "a" }]);
    expect(raw.prepare("SELECT * FROM of_the_future").all()).toEqual([]);
    raw.close();
  });

  it("has one process at a time; the second one is named the first", () => {
    const first = open();
    expect(open).toThrow(
      new RegExp(
        `state directory ${directory} is in use by another agent: process ${process.pid} on \\S+, running since 2023-`,
      ),
    );
    first.close();
    open().close();
  });

  it("takes over from a process that was killed", async () => {
    const child = openInChild("sh", "-c", 'exec "$0" "$@"');
    await once(child.stdout, "data");
    expect(open).toThrow(`process ${child.pid} on`);
    child.kill("SIGKILL");
    await once(child, "close");
    open().close();
  });

  it("is kept in memory where the directory can't be written, and reports it", () => {
    const log = createLogger("error", { write: (line) => lines.push(JSON.parse(line)) });
    const lines: { msg: string }[] = [];
    // Not even root can make a directory here.
    const database = StateDatabase.open({ directory: "/sys/nodekeeper", clock: new FakeClock(), log });
    new ReporterStore(database).saveContents([], []);
    expect(database.healthCheck().check()).toEqual({
      ok: false,
      message: expect.stringMatching(
        /kept in memory, \/sys\/nodekeeper\/nodekeeper\.db could not be written.*restart/,
      ),
      errorId: "NK1105",
    });
    expect(lines).toMatchObject([
      { msg: expect.stringContaining("failed to open the state database"), errorId: "NK1105" },
    ]);
    expect(database.mayHaveLostCommits).toBe(true);
    database.close();
  });

  it.each(["new", "used"])("is kept in memory while the disk is full, in a %s directory", async (kind) => {
    if (kind === "used") open().close();
    // Every write fails, as on a full disk: creating empty files does not.
    const child = openInChild("sh", "-c", 'ulimit -f 0; exec "$0" "$@"');
    const [output] = await once(child.stdout, "data");
    expect(open).toThrow(
      expect.objectContaining({ id: "NK1102", message: expect.stringContaining("in use by another agent") }),
    );
    child.kill("SIGKILL");
    await once(child, "close");
    expect(String(output)).toMatch(/kept in memory, .*nodekeeper\.db could not be written/);
    const afterwards = open();
    expect(afterwards.healthCheck().check().ok).toBe(true);
    afterwards.close();
  });

  it("keeps a damaged file in place while the disk has no room for its readable rows", async () => {
    const path = join(directory, "nodekeeper.db");
    const damaged = damagedDatabase();
    writeFileSync(path, damaged);
    // A limit of the size of files, in KiB: the file can be set aside, but its rows do not fit in a new one.
    const child = openInChild("bash", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$0" "$@"');
    const [output] = await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "close");
    expect(String(output)).toMatch(/kept in memory, .*nodekeeper\.db could not be written/);
    expect(readFileSync(path).equals(damaged)).toBe(true);
    expect(readdirSync(directory).filter((name) => /corrupt-/.test(name))).toEqual([]);
    const afterwards = open();
    expect(new ReporterStore(afterwards).lastGood()).toMatchObject([{ plugin: "a" }]);
    afterwards.close();
  });

  it("is started in memory with what a file has that can only be read, and leaves the file as it is", () => {
    const path = join(directory, "nodekeeper.db");
    const onDisk = open();
    const content = { plugin: "a", content: new Uint8Array([1]), updatedAt: 5, stoppedAt: null };
    new ReporterStore(onDisk).saveContents([content], []);
    onDisk.close();
    const bytes = readFileSync(path);
    const { connection } = openInMemory(path);
    const rows = () => connection.prepare("SELECT plugin FROM reporter_content").all();
    expect(rows()).toEqual([{ plugin: "a" }]);
    connection.exec("DELETE FROM reporter_content");
    expect(rows()).toEqual([]);
    connection.close();
    expect(readFileSync(path).equals(bytes)).toBe(true);
    writeFileSync(path, Buffer.alloc(8192, "not a database "));
    openInMemory(path).connection.close();
  });

  it("notices that its file was removed or replaced", () => {
    const database = open();
    const { check } = database.healthCheck();
    expect(check().ok).toBe(true);
    renameSync(join(directory, "nodekeeper.db"), join(directory, "elsewhere"));
    expect(check()).toEqual({
      ok: false,
      message: expect.stringContaining("removed or replaced"),
      errorId: "NK1106",
    });
    writeFileSync(join(directory, "nodekeeper.db"), "");
    expect(check().ok).toBe(false);
    renameSync(join(directory, "elsewhere"), join(directory, "nodekeeper.db"));
    expect(check().ok).toBe(true);
    database.close();
  });

  it("reports when the directory can't be created", () => {
    writeFileSync(join(directory, "file"), "");
    const options = {
      directory: join(directory, "file", "state"),
      clock: new FakeClock(),
      log: silentLogger,
    };
    expect(() => StateDatabase.open(options)).toThrow(
      expect.objectContaining({
        id: "NK1101",
        message: expect.stringMatching(/state directory .* can't be created/),
      }),
    );
  });

  it("keeps the old contents when the disk is full", () => {
    const database = open();
    const store = new ReporterStore(database);
    store.saveContents([{ plugin: "a", content: new Uint8Array(10), updatedAt: 1, stoppedAt: null }], []);
    // SQLite answers SQLITE_FULL at its page limit just as on a full disk.
    const { page_count: pages } = database.connection.prepare("PRAGMA page_count").get() as {
      page_count: number;
    };
    database.connection.exec(`PRAGMA max_page_count = ${pages}`);
    const big = { plugin: "a", content: new Uint8Array(1 << 20), updatedAt: 2, stoppedAt: null };
    expect(() => store.saveContents([big], [])).toThrow(/full/);
    expect(store.contents()[0]?.updatedAt).toBe(1);
    database.connection.exec("PRAGMA max_page_count = 100000");
    store.saveContents([big], []);
    expect(store.contents()[0]?.updatedAt).toBe(2);
  });
});

/** A process that opens the database, prints its health, and stays. Started by the command, which gets Node's arguments. */
function openInChild(command: string, ...args: readonly string[]) {
  const imported = (file: string) => JSON.stringify(join(import.meta.dirname, file));
  const script = `const { StateDatabase } = await import(${imported("index.ts")});
    const { silentLogger: log, systemClock: clock } = await import(${imported("../../../core/src/lib/index.ts")});
    const database = StateDatabase.open({ directory: ${JSON.stringify(directory)}, clock, log });
    console.log(database.healthCheck().check().message);
    // Referenced for good: a database that is collected as garbage is closed, and its lock ends.
    setInterval(() => database.connection.isOpen, 1_000);`;
  const node = [process.execPath, "--input-type=module", "-e", script];
  return spawn(command, [...args, ...node], { stdio: ["ignore", "pipe", "inherit"] });
}

function damagedDatabase(): Buffer {
  const scratch = mkdtempSync(join(tmpdir(), "nodekeeper-damaged-"));
  const database = StateDatabase.open({ directory: scratch, clock: new FakeClock(), log: silentLogger });
  new ReporterStore(database).saveContents(
    Array.from({ length: 50 }, (_, at) => ({
      plugin: `plugin-${at}`,
      content: new Uint8Array(500),
      updatedAt: at,
      stoppedAt: null,
    })),
    [],
  );
  new ReporterStore(database).saveLastGood("v1/Node", "main", new Map([["a", new Uint8Array([1])]]));
  database.close();
  const bytes = readFileSync(join(scratch, "nodekeeper.db"));
  rmSync(scratch, { recursive: true });
  return bytes.fill(0xaa, 4096, 12_288);
}

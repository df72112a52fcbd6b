import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withLog } from "./wal.ts";

let directory: string;
let writer: DatabaseSync;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-wal-"));
  path = join(directory, "one.db");
});

afterEach(() => {
  if (writer.isOpen) writer.close();
  rmSync(directory, { recursive: true, force: true });
});

function open(pageSize = 4_096): void {
  writer = new DatabaseSync(path);
  writer.exec(`PRAGMA page_size = ${pageSize}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
               CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT) STRICT`);
}

function add(count: number, length = 300): void {
  const insert = writer.prepare("INSERT INTO entry (text) VALUES (hex(randomblob(?)))");
  for (let i = 0; i < count; i++) insert.run(length);
}

// What SQLite reads of a copy of both files.
function expected(log = readFileSync(`${path}-wal`)): unknown[] {
  const copy = join(directory, "copy.db");
  for (const suffix of ["", "-wal", "-shm"]) rmSync(copy + suffix, { force: true });
  copyFileSync(path, copy);
  writeFileSync(`${copy}-wal`, log);
  const reader = new DatabaseSync(copy);
  const rows = reader.prepare("SELECT * FROM entry").all();
  reader.close();
  return rows;
}

function read(log: Uint8Array = readFileSync(`${path}-wal`)): unknown[] {
  const memory = new DatabaseSync(":memory:");
  memory.deserialize(withLog(readFileSync(path), log));
  expect(memory.prepare("PRAGMA quick_check").get()).toEqual({ quick_check: "ok" });
  const rows = memory.prepare("SELECT * FROM entry").all();
  memory.close();
  return rows;
}

describe("reads what SQLite reads of file and log", () => {
  it.for([512, 4_096, 65_536])("with pages of %d bytes", (pageSize) => {
    open(pageSize);
    add(50);
    writer.exec("PRAGMA wal_checkpoint(FULL)");
    add(70, 3_000);
    writer.exec("DELETE FROM entry WHERE id % 3 = 0; UPDATE entry SET text = 'changed' WHERE id % 5 = 0");
    expect(read()).toEqual(expected());
    expect(read()).not.toEqual(read(Buffer.alloc(0)));
  });

  it("after a checkpoint, with frames of an earlier log behind those of the newer one", () => {
    open();
    add(200);
    writer.exec("PRAGMA wal_checkpoint(RESTART)");
    add(3);
    expect(read()).toEqual(expected());
    expect(read()).toHaveLength(203);
  });

  it("after it has become smaller", () => {
    open();
    add(300, 2_000);
    writer.exec("DELETE FROM entry WHERE id > 2; VACUUM");
    expect(read()).toEqual(expected());
  });

  it("without a transaction that was not committed", () => {
    open();
    add(2);
    writer.exec("PRAGMA cache_size = 1; BEGIN");
    add(400, 2_000);
    expect(read()).toEqual(expected());
    expect(read()).toHaveLength(2);
  });

  it("of a log that ends anywhere, or in which any byte is wrong", () => {
    open();
    for (let i = 0; i < 6; i++) add(1);
    const log = readFileSync(`${path}-wal`);
    for (let end = 0; end <= log.length; end += 1_237)
      if (end >= 32 + 2 * 4_120) expect(read(log.subarray(0, end))).toEqual(expected(log.subarray(0, end)));
    for (let at = 32 + 4 * 4_120; at < log.length; at += 1_031) {
      const wrong = Buffer.from(log);
      wrong[at] = wrong[at]! ^ 0x40;
      expect(read(wrong)).toEqual(expected(wrong));
    }
  });
});

it("is the file alone if the log is none", () => {
  open();
  add(2);
  writer.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  for (const log of [Buffer.alloc(0), Buffer.alloc(5_000, "no log")]) expect(read(log)).toHaveLength(2);
});

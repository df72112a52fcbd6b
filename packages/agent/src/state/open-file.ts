import { chmodSync, closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { migrate } from "./migrations.ts";

/** An open database of the current schema. */
export interface OpenedDatabase {
  connection: DatabaseSync;
  /** The agent before did not close it. */
  wasOpen: boolean;
  /** Commits may be missing. */
  mayHaveLostCommits: boolean;
}

/** Opens the file or creates it, checks it, and brings its schema up to date. */
export function openFile(path: string, bootId: string): OpenedDatabase {
  keepPrivate(path);
  // SQLite removes it when the file is closed.
  const wasOpen = existsSync(`${path}-wal`);
  const connection = new DatabaseSync(path, { timeout: 2_000 });
  try {
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    // The default cache is 2 MB and page reads are rare here.
    connection.exec("PRAGMA cache_size = -512; PRAGMA journal_size_limit = 4194304");
    checkIntegrity(connection, path);
    migrate(connection, path);
    const bootedSince = noteBoot(connection, bootId);
    return { connection, wasOpen, mayHaveLostCommits: wasOpen && bootedSince };
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** A database in memory with the file's contents where it can be read, else an empty one. The file is not written. */
export function openInMemory(path: string): OpenedDatabase {
  for (const contents of [contentsOf(path), undefined]) {
    const connection = new DatabaseSync(":memory:");
    try {
      if (contents) connection.deserialize(contents);
      connection.exec("PRAGMA foreign_keys = ON");
      checkIntegrity(connection, path);
      migrate(connection, path);
      // The file is not updated while this one is: its contents must not be taken for the newest later.
      return { connection, wasOpen: true, mayHaveLostCommits: true };
    } catch (error) {
      connection.close();
      if (!contents) throw error;
    }
  }
  throw new NodekeeperError("internal", "an empty database in memory could not be opened");
}

const LARGEST_IN_MEMORY = 256 * 1024 * 1024;
// Offsets of the header's two bytes that are 2 for WAL, 1 for a rollback journal: https://www.sqlite.org/fileformat.html
const [WRITE_VERSION, READ_VERSION] = [18, 19];

function contentsOf(path: string): Uint8Array | undefined {
  try {
    if (statSync(path).size > LARGEST_IN_MEMORY) return undefined;
    const bytes = readFileSync(path);
    if (bytes.length <= READ_VERSION) return undefined;
    // There is no write-ahead log in memory.
    bytes[WRITE_VERSION] = 1;
    bytes[READ_VERSION] = 1;
    return bytes;
  } catch {
    return undefined;
  }
}

/** Renames the file and what belongs to it to `<path>.<why>-<time>`; returns the new path. */
export function setAside(path: string, why: string, now: number): string {
  const stamp = new Date(now).toISOString().replaceAll(":", "").replace(/\..*/, "Z");
  let aside = `${path}.${why}-${stamp}`;
  for (let copy = 2; existsSync(aside); copy++) aside = `${path}.${why}-${stamp}-${copy}`;
  // The write-ahead log belongs to the file: left behind, it would be replayed into the new one.
  for (const suffix of ["", "-wal", "-shm"]) {
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  }
  return aside;
}

function checkIntegrity(connection: DatabaseSync, path: string): void {
  const check = connection.prepare("PRAGMA quick_check(1)").get() as { quick_check: string };
  if (check.quick_check !== "ok")
    throw new NodekeeperError("corrupt", `${path}: ${check.quick_check}`, { id: "NK1103" });
}

// Whether the file was last opened during another boot.
function noteBoot(connection: DatabaseSync, bootId: string): boolean {
  const last = connection.prepare("SELECT id FROM boot").get()?.id;
  if (last === bootId) return false;
  connection.prepare("INSERT OR REPLACE INTO boot (one, id) VALUES (1, ?)").run(bootId);
  return last !== undefined;
}

// Before SQLite opens it: the write-ahead log gets the mode that the file has when it is made.
function keepPrivate(path: string): void {
  closeSync(openSync(path, "a", 0o600));
  for (const suffix of ["", "-wal", "-shm"]) if (existsSync(path + suffix)) chmodSync(path + suffix, 0o600);
}

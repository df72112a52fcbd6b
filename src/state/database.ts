import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Clock, type Logger, messageOf, NodekeeperError } from "../lib/index.ts";
import { migrate } from "./migrations.ts";

const FILE_NAME = "nodekeeper.db";

export interface StateDatabaseOptions {
  /** Absolute path of the folder; made with mode 0700 where missing. */
  directory: string;
  clock: Clock;
  log: Logger;
  /** Another one for each boot of the machine. Default: the kernel's. */
  bootId?: string;
}

/**
 * The one file in which the agent keeps what must survive it: SQLite in WAL mode.
 * A commit survives SIGKILL of the agent at any point; the last commits before a power cut may be lost, the file not.
 */
export class StateDatabase implements Disposable {
  readonly connection: DatabaseSync;
  /** Where a corrupt predecessor was set aside, if there was one. */
  readonly setAside: string | undefined;
  /** Whether it was empty when it was opened: what an earlier agent did, if there was one, is not known. */
  readonly isNew: boolean;

  /** Whether the machine went down while the file was open: the last commits may be missing. */
  readonly mayHaveLostCommits: boolean;

  private constructor(opened: OpenedFile, setAside: string | undefined) {
    this.connection = opened.connection;
    this.isNew = opened.isNew;
    this.mayHaveLostCommits = opened.mayHaveLostCommits;
    this.setAside = setAside;
  }

  /**
   * Opens the database, or makes it. A file that can't be read is renamed, reported, and a new one started.
   * Throws `unavailable` where the folder can't be written, `unsupported` where a newer agent wrote the file.
   */
  static open({ directory, clock, log, bootId = kernelBootId() }: StateDatabaseOptions): StateDatabase {
    const path = join(directory, FILE_NAME);
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw new NodekeeperError("unavailable", `state directory ${directory} can't be made`, { cause });
    }
    try {
      return new StateDatabase(openFile(path, bootId), undefined);
    } catch (error) {
      if (!isCorruption(error)) throw openError(path, error);
      const aside = setAside(path, clock.now());
      log.error(
        { err: error, path, setAside: aside },
        "state database is corrupt: set aside, starting a new one",
      );
      return new StateDatabase(openFile(path, bootId), aside);
    }
  }

  /** Runs `work` in one transaction: all of it is kept, or nothing. */
  transaction<T>(work: () => T): T {
    this.connection.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.connection.exec("COMMIT");
      return result;
    } catch (error) {
      // A full disk rolls back by itself; a second ROLLBACK would hide the first error.
      if (this.connection.isTransaction) this.connection.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    if (this.connection.isOpen) this.connection.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

interface OpenedFile {
  connection: DatabaseSync;
  isNew: boolean;
  mayHaveLostCommits: boolean;
}

function openFile(path: string, bootId: string): OpenedFile {
  keepPrivate(path);
  // SQLite removes it when the file is closed.
  const wasOpen = existsSync(`${path}-wal`);
  const connection = new DatabaseSync(path, { timeout: 2_000 });
  try {
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
    // The default cache is 2 MB and page reads are rare here.
    connection.exec("PRAGMA cache_size = -512; PRAGMA journal_size_limit = 4194304");
    const check = connection.prepare("PRAGMA quick_check(1)").get() as { quick_check: string };
    if (check.quick_check !== "ok") throw new NodekeeperError("corrupt", `${path}: ${check.quick_check}`);
    const isNew = migrate(connection, path);
    const bootedSince = noteBoot(connection, bootId);
    return { connection, isNew, mayHaveLostCommits: wasOpen && bootedSince };
  } catch (error) {
    connection.close();
    throw error;
  }
}

// Whether the file was last opened in another boot.
function noteBoot(connection: DatabaseSync, bootId: string): boolean {
  const last = connection.prepare("SELECT id FROM boot").get()?.id;
  if (last === bootId) return false;
  connection.prepare("INSERT OR REPLACE INTO boot (one, id) VALUES (1, ?)").run(bootId);
  return last !== undefined;
}

function kernelBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "unknown";
  }
}

// Before SQLite opens it: the write-ahead log gets the mode that the file has when it is made.
function keepPrivate(path: string): void {
  closeSync(openSync(path, "a", 0o600));
  for (const suffix of ["", "-wal", "-shm"]) if (existsSync(path + suffix)) chmodSync(path + suffix, 0o600);
}

// SQLite's result codes: https://www.sqlite.org/rescode.html
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

function isCorruption(error: unknown): boolean {
  if (error instanceof NodekeeperError) return error.code === "corrupt";
  const code = (error as { errcode?: number }).errcode;
  if (code === undefined) return false;
  return (code & 0xff) === SQLITE_CORRUPT || (code & 0xff) === SQLITE_NOTADB;
}

function openError(path: string, error: unknown): unknown {
  if (error instanceof NodekeeperError) return error;
  return new NodekeeperError("unavailable", `state database ${path} can't be opened: ${messageOf(error)}`, {
    cause: error,
  });
}

// The write-ahead log belongs to the file: left behind, it would be replayed into the new one.
function setAside(path: string, now: number): string {
  const stamp = new Date(now).toISOString().replaceAll(":", "").replace(/\..*/, "Z");
  let aside = `${path}.corrupt-${stamp}`;
  for (let copy = 2; existsSync(aside); copy++) aside = `${path}.corrupt-${stamp}-${copy}`;
  for (const suffix of ["", "-wal", "-shm"]) {
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  }
  return aside;
}

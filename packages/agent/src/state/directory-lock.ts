import { closeSync, existsSync, openSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StateDirectoryInUse } from "@nodekeeper/api/errors";
import { isBusy } from "./sqlite-errors.ts";

const LOCK_FILE = "nodekeeper.lock";
const HOLDER_FILE = "nodekeeper.pid";
// A predecessor that is being stopped releases the lock within its stop deadline, or is killed.
const WAIT_MS = 2_000;

/** The agent that has locked a state directory, as recorded by itself. */
interface Holder {
  pid: number;
  /** Host name. In a pod, where the PID identifies little, this is the name of the pod. */
  host: string;
  /** RFC 3339. */
  since: string;
}

/**
 * Lock of a state directory: one process at a time may use it. The kernel holds the lock (SQLite takes a
 * POSIX record lock on an empty file), so it is released when the process exits for any reason.
 */
export class DirectoryLock implements Disposable {
  /**
   * When the previous holder was last alive, in milliseconds since the epoch. Undefined if there was none.
   */
  readonly aliveBefore: number | undefined;
  readonly #connection: DatabaseSync;
  readonly #holderFile: string;

  private constructor(connection: DatabaseSync, holderFile: string) {
    this.#connection = connection;
    this.#holderFile = holderFile;
    this.aliveBefore = modifiedAt(holderFile);
  }

  /**
   * Takes the lock. Waits up to 2 s. Throws `conflict`, which names the holder, and SQLite's error if the
   * directory is not writable.
   * @param now milliseconds since the epoch
   */
  static take(directory: string, now: number): DirectoryLock {
    const path = join(directory, LOCK_FILE);
    closeSync(openSync(path, "a", 0o600));
    const connection = new DatabaseSync(path, { timeout: WAIT_MS });
    try {
      // Nothing is ever written to the file, so it needs no journal on disk.
      connection.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    } catch (error) {
      connection.close();
      if (!isBusy(error)) throw error;
      throw new StateDirectoryInUse({ directory, holder: holderOf(directory) });
    }
    const holderFile = join(directory, HOLDER_FILE);
    const lock = new DirectoryLock(connection, holderFile);
    introduce(holderFile, now);
    lock.showAlive(now);
    return lock;
  }

  /**
   * Returns whether no process has locked the directory. Also true if the lock cannot be read: `take` throws
   * the reason.
   */
  static isFree(directory: string): boolean {
    const path = join(directory, LOCK_FILE);
    if (!existsSync(path)) return true;
    let connection: DatabaseSync | undefined;
    try {
      connection = new DatabaseSync(path, { timeout: 0 });
      connection.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
      return true;
    } catch (error) {
      return !isBusy(error);
    } finally {
      connection?.close();
    }
  }

  /**
   * Records that the holder is alive: sets the modification time of the holder file without writing to it.
   * @param now milliseconds since the epoch
   */
  showAlive(now: number): void {
    try {
      utimesSync(this.#holderFile, now / 1_000, now / 1_000);
    } catch {}
  }

  [Symbol.dispose](): void {
    if (this.#connection.isOpen) this.#connection.close();
  }
}

// For operators. The lock does not depend on the file.
function introduce(file: string, now: number): void {
  const holder: Holder = { pid: process.pid, host: hostname(), since: new Date(now).toISOString() };
  try {
    writeFileSync(file, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  } catch {}
}

function modifiedAt(file: string): number | undefined {
  try {
    return Math.floor(statSync(file).mtimeMs);
  } catch {
    return undefined;
  }
}

function holderOf(directory: string): string {
  try {
    const { pid, host, since } = JSON.parse(readFileSync(join(directory, HOLDER_FILE), "utf8")) as Holder;
    return `another agent: process ${pid} on ${host}, running since ${since}`;
  } catch {
    return `another agent (${join(directory, HOLDER_FILE)} does not name it)`;
  }
}

import { closeSync, openSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { isBusy } from "./sqlite-errors.ts";

const LOCK_FILE = "nodekeeper.lock";
const HOLDER_FILE = "nodekeeper.pid";
// A predecessor that is being stopped releases the lock within its stop deadline, or is killed.
const WAIT_MS = 2_000;

/** The agent that has locked a state directory, as it described itself. */
interface Holder {
  pid: number;
  /** In a pod, where the pid identifies little: the name of the pod. */
  host: string;
  /** RFC 3339. */
  since: string;
}

/**
 * The right to use a state directory: one process at a time. The lock is the kernel's (SQLite takes a POSIX record
 * lock on an empty file), so it is released when the process exits, for whatever reason.
 */
export class DirectoryLock implements Disposable {
  /** When the holder before was alive last, wall milliseconds; undefined where there was none. */
  readonly aliveBefore: number | undefined;
  readonly #connection: DatabaseSync;
  readonly #holderFile: string;

  private constructor(connection: DatabaseSync, holderFile: string) {
    this.#connection = connection;
    this.#holderFile = holderFile;
    this.aliveBefore = modifiedAt(holderFile);
  }

  /**
   * Takes the lock, waiting at most 2 s.
   * @param now wall milliseconds
   * Throws `conflict` that names the holder; SQLite's error where the directory can't be written.
   */
  static take(directory: string, now: number): DirectoryLock {
    const path = join(directory, LOCK_FILE);
    closeSync(openSync(path, "a", 0o600));
    const connection = new DatabaseSync(path, { timeout: WAIT_MS });
    try {
      // Nothing is ever written to it: it needs no journal on the disk.
      connection.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    } catch (error) {
      connection.close();
      if (!isBusy(error)) throw error;
      throw new NodekeeperError(
        "conflict",
        `state directory ${directory} is in use by ${holderOf(directory)}`,
        { id: "NK1102" },
      );
    }
    const holderFile = join(directory, HOLDER_FILE);
    const lock = new DirectoryLock(connection, holderFile);
    introduce(holderFile, now);
    lock.showAlive(now);
    return lock;
  }

  /** Leaves a sign that the holder is alive: the time of its file, in wall milliseconds, without writing to it. */
  showAlive(now: number): void {
    try {
      utimesSync(this.#holderFile, now / 1_000, now / 1_000);
    } catch {}
  }

  [Symbol.dispose](): void {
    if (this.#connection.isOpen) this.#connection.close();
  }
}

// For people: the lock holds without it where the disk is full.
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

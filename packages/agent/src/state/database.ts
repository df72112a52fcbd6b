import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import {
  type Clock,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  NodekeeperError,
  readBootTime,
} from "@nodekeeper/core/lib";
import { DirectoryLock } from "./directory-lock.ts";
import { GapMarker } from "./gap-marker.ts";
import { NewerSchemaError } from "./migrations.ts";
import { type OpenedDatabase, openFile, openInMemory, setAside } from "./open-file.ts";
import { RecordAge } from "./record-age.ts";
import { RecordCoverage } from "./record-coverage.ts";
import { isCorruption, isDiskTrouble } from "./sqlite-errors.ts";

const FILE_NAME = "nodekeeper.db";

export interface StateDatabaseOptions {
  /** Absolute path of the folder; made with mode 0700 where missing. */
  directory: string;
  clock: Clock;
  log: Logger;
  /** Changes with each boot of the machine. Default: the kernel's. */
  bootId?: string;
  /** A copy that nothing but its reader writes: the agent before may still be running. Default: false. */
  isCopy?: boolean;
}

/** How a database is stored. */
interface Disk {
  /** Undefined where the directory can't be written at all. */
  lock: DirectoryLock | undefined;
  marker: GapMarker | undefined;
  /** Where an unusable predecessor was set aside, if there was one. */
  setAside: string | undefined;
  /** Why it is kept in memory. */
  trouble: string | undefined;
}

/**
 * The one file with the state that survives the agent: SQLite in WAL mode, in a directory that is locked.
 *
 * 1. A commit survives SIGKILL of the agent at any point; the last commits before a power cut may be lost, the file not.
 * 2. Of several agents with one directory, the first has it; the others do not start. A full disk does not
 *    change that; where not even the lock's file can be opened, they do not notice each other.
 * 3. A file that can't be read, or that a newer agent wrote, is set aside, never changed or removed.
 * 4. Where the disk is full, read-only or broken, the database is kept in memory and the health check fails.
 */
export class StateDatabase implements Disposable {
  readonly connection: DatabaseSync;
  /** Where an unusable predecessor was set aside, if there was one. */
  readonly setAside: string | undefined;
  /** Commits of an earlier agent may be missing: the machine went down while the file was open, or it could not be written. */
  readonly mayHaveLostCommits: boolean;
  /** By which records are trimmed. */
  readonly age: RecordAge;
  /** Since when and where the records are complete. */
  readonly coverage: RecordCoverage;
  readonly #path: string;
  readonly #log: Logger;
  readonly #disk: Disk;
  readonly #inode: bigint | undefined;
  #wasRemoved = false;

  private constructor(
    opened: OpenedDatabase,
    path: string,
    { log, clock, isCopy = false }: StateDatabaseOptions,
    disk: Disk,
  ) {
    const { connection, mayHaveLostCommits, wasOpen } = opened;
    const { lock, marker, trouble } = disk;
    this.connection = connection;
    this.mayHaveLostCommits = mayHaveLostCommits;
    this.age = new RecordAge(connection, clock, readBootTime());
    // In memory nothing is ever written to the disk: the marker stays set.
    this.coverage = new RecordCoverage(connection, trouble === undefined ? marker : undefined, clock);
    this.coverage.start({
      unwrittenSince: marker?.before,
      savedAt: this.age.savedAt(),
      mayHaveLostCommits,
      aliveAt: wasOpen && !isCopy ? lock?.aliveBefore : undefined,
    });
    if (trouble !== undefined) marker?.set(marker.before ?? clock.now());
    this.setAside = disk.setAside;
    this.#path = path;
    this.#log = log;
    this.#disk = disk;
    this.#inode = trouble === undefined ? inodeOf(path) : undefined;
  }

  /**
   * Opens the database, or makes it. Throws `conflict` that names the agent which has locked the directory, `invalid` where
   * the path can't be a directory.
   */
  static open(options: StateDatabaseOptions): StateDatabase {
    const { directory, clock, log, bootId = kernelBootId() } = options;
    const path = join(directory, FILE_NAME);
    let lock: DirectoryLock | undefined;
    let marker: GapMarker | undefined;
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      lock = DirectoryLock.take(directory, clock.now());
      marker = new GapMarker(directory);
      const { opened, aside } = openUsable(path, bootId, clock.now(), log);
      return new StateDatabase(opened, path, options, { lock, marker, setAside: aside, trouble: undefined });
    } catch (error) {
      if (!isDiskTrouble(error)) {
        marker?.[Symbol.dispose]();
        lock?.[Symbol.dispose]();
        throw openError(directory, error);
      }
      const trouble = messageOf(error);
      log.error(
        { errorId: "NK1105", err: error, path },
        "state database can't be written: the agent runs on what it keeps in memory",
      );
      return new StateDatabase(openInMemory(path), path, options, {
        // A full disk is no reason to have two agents evict from one node.
        lock,
        marker,
        setAside: undefined,
        trouble,
      });
    }
  }

  /** Runs `work` in one transaction: all of it is committed, or nothing. */
  transaction<T>(work: () => T): T {
    this.connection.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.connection.exec("COMMIT");
      return result;
    } catch (error) {
      // A full disk rolls back by itself; a second ROLLBACK would hide the first error.
      if (this.connection.isTransaction) this.connection.exec("ROLLBACK");
      this.coverage.rolledBack();
      throw error;
    }
  }

  /** Fails while the state would be lost when the agent exits: it is kept in memory, or its file was removed. */
  healthCheck(): HealthCheck {
    return { name: "StateDatabaseReady", kind: "ready", check: () => this.#health() };
  }

  /** When the agent that had the directory before was alive last, as far as `showAlive` has it; wall milliseconds. */
  get aliveBefore(): number | undefined {
    return this.#disk.lock?.aliveBefore;
  }

  /** Leaves a sign that the agent is alive. @param now wall milliseconds */
  showAlive(now: number): void {
    this.#disk.lock?.showAlive(now);
  }

  close(): void {
    if (this.connection.isOpen) this.connection.close();
    this.#disk.marker?.[Symbol.dispose]();
    this.#disk.lock?.[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #health(): HealthResult {
    const { trouble } = this.#disk;
    if (trouble !== undefined) {
      const message = `kept in memory, ${this.#path} could not be written at the start: ${trouble}; restart the agent when it can`;
      return { ok: false, message, errorId: "NK1105" };
    }
    if (this.#inode === inodeOf(this.#path)) return { ok: true, message: this.#path };
    if (!this.#wasRemoved) {
      this.#log.error(
        { errorId: "NK1106", path: this.#path },
        "state database was removed or replaced under the running agent",
      );
    }
    this.#wasRemoved = true;
    const message = `${this.#path} was removed or replaced under the running agent: what it writes is lost when it exits; restart it`;
    return { ok: false, message, errorId: "NK1106" };
  }
}

// A file that can't be used is set aside, and a new one started.
function openUsable(path: string, bootId: string, now: number, log: Logger) {
  try {
    return { opened: openFile(path, bootId), aside: undefined };
  } catch (error) {
    if (error instanceof NewerSchemaError) {
      const aside = setAside(path, `schema-${error.version}`, now);
      log.warn(
        { errorId: "NK1104", err: error, path, setAside: aside },
        "state database was written by a newer agent: set aside, a new one is started",
      );
      return { opened: openFile(path, bootId), aside };
    }
    if (!isCorruption(error)) throw error;
    const aside = setAside(path, "corrupt", now);
    log.error(
      { errorId: "NK1103", err: error, path, setAside: aside },
      "state database is corrupt: set aside, a new one is started",
    );
    return { opened: openFile(path, bootId), aside };
  }
}

function inodeOf(path: string): bigint | undefined {
  try {
    return statSync(path, { bigint: true }).ino;
  } catch {
    return undefined;
  }
}

function kernelBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "unknown";
  }
}

function openError(directory: string, error: unknown): unknown {
  if (error instanceof NodekeeperError) return error;
  return new NodekeeperError("invalid", `state directory ${directory} can't be made or used`, {
    id: "NK1101",
    cause: error,
  });
}

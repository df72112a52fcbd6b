import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { StateDirectoryUnusable, StateNotWritable, StateRemoved } from "@nodekeeper/api/errors";
import {
  type Clock,
  type HealthCheck,
  type HealthResult,
  type Logger,
  messageOf,
  NodekeeperError,
  readBootTime,
} from "@nodekeeper/core/lib";
import { BootDirectory, type BootMark } from "./boot-directory.ts";
import { type ContinuedStore, Continuity, type Standing } from "./continuity.ts";
import { DirectoryLock } from "./directory-lock.ts";
import { GapMarker } from "./gap-marker.ts";
import type { OpenedDatabase } from "./open-file.ts";
import { openUsable, openUsableInMemory } from "./open-usable.ts";
import { RecordAge } from "./record-age.ts";
import { RecordCoverage } from "./record-coverage.ts";
import { isDiskTrouble } from "./sqlite-errors.ts";
import { tables } from "./tables.ts";

export const FILE_NAME = "nodekeeper.db";

export interface StateDatabaseOptions {
  /** Absolute path of the directory. Created with mode 0700 if it does not exist. */
  directory: string;
  clock: Clock;
  log: Logger;
  /** Changes with each boot of the machine. Default: the kernel's boot ID. */
  bootId?: string;
  /**
   * Absolute path of a directory on a tmpfs for state that must be known even if the state directory is not
   * writable or was restored: see `BootDirectory`. Default: none; a start then cannot prove that nothing is
   * missing.
   */
  bootDirectory?: string | undefined;
  /**
   * Whether the database is a private copy. The agent that wrote the original may still be running. Default:
   * false.
   */
  isCopy?: boolean;
}

const CONTINUITY = "continuity";

/** How a database is stored. */
interface Disk {
  /** Undefined if the directory is not writable at all. */
  lock: DirectoryLock | undefined;
  marker: GapMarker | undefined;
  /** Path of an unusable predecessor that was set aside. Undefined if there was none. */
  setAside: string | undefined;
  /** Why the database is kept in memory. Undefined if it is on disk. */
  trouble: string | undefined;
  boot: BootDirectory;
}

/**
 * The file with the state that survives the agent: SQLite in WAL mode, in a locked directory.
 *
 * 1. A commit survives SIGKILL of the agent at any point. A power cut may lose the last commits, but not the
 *    file.
 * 2. If several agents use one directory, the first locks it and the others do not start, even if the disk is
 *    full. If not even the lock file can be opened, they do not detect each other.
 * 3. Damage only loses rows that cannot be read. A file with damaged pages, or one written by a newer agent,
 *    is set aside and never changed or removed. Readable rows of a damaged file are copied to the new one; if
 *    the disk has no room for them, the damaged file stays in place for the next start.
 * 4. If the disk is full, read-only or broken, the database is kept in memory and the health check fails. It
 *    starts with the content of the file and its write-ahead log.
 * 5. A start detects if it cannot prove that it continues from the state of the previous agent: see
 *    `Continuity`.
 */
export class StateDatabase implements Disposable {
  readonly connection: DatabaseSync;
  /** Path of an unusable predecessor that was set aside. Undefined if there was none. */
  readonly setAside: string | undefined;
  /**
   * Whether commits of an earlier agent may be missing: the machine went down while the file was open, the
   * file could not be written, or it was replaced by an older copy.
   */
  readonly mayHaveLostCommits: boolean;
  /** The age by which records are trimmed. */
  readonly age: RecordAge;
  /** The times for which the records are complete. */
  readonly coverage: RecordCoverage;
  readonly #path: string;
  readonly #log: Logger;
  readonly #disk: Disk;
  readonly #inode: bigint | undefined;
  readonly #mark: BootMark;
  readonly #continuity: Continuity;
  readonly #statements = new Map<string, StatementSync>();
  #wasRemoved = false;

  private constructor(
    opened: OpenedDatabase,
    path: string,
    { log, clock, isCopy = false }: StateDatabaseOptions,
    disk: Disk,
  ) {
    const { connection, wasOpen } = opened;
    const { lock, marker, trouble, boot } = disk;
    this.connection = connection;
    this.#mark = boot.openMark(CONTINUITY);
    const damaged = opened.damage.flatMap(({ table }) => tables[table] ?? []);
    this.#continuity = new Continuity(connection, this.#mark, {
      isKept: trouble === undefined,
      damaged: damaged.flatMap(({ store }) => store ?? []),
    });
    const { standing } = this.#continuity;
    const mayHaveLostCommits = standing !== "newest" && (opened.mayHaveLostCommits || standing === "behind");
    this.mayHaveLostCommits = mayHaveLostCommits;
    this.age = new RecordAge(connection, clock, readBootTime());
    // A database in memory is never written to disk, so the marker remains set.
    this.coverage = new RecordCoverage(connection, trouble === undefined ? marker : undefined, clock);
    this.coverage.start({
      unwrittenSince: marker?.before,
      savedAt: this.age.savedAt(),
      mayHaveLostCommits,
      wasOpen: wasOpen && trouble === undefined,
      isDamaged: damaged.some(({ isRecord }) => isRecord),
      aliveAt: wasOpen && !isCopy ? lock?.aliveBefore : undefined,
    });
    if (!this.isProven) this.#begin(boot);
    this.coverage.complete();
    if (trouble !== undefined) marker?.set(marker.before ?? clock.now());
    this.setAside = disk.setAside;
    this.#path = path;
    this.#log = log;
    this.#disk = disk;
    this.#inode = trouble === undefined ? inodeOf(path) : undefined;
  }

  /**
   * Opens or creates the database. Throws `conflict`, which names the agent that has locked the directory,
   * and `invalid` if the path cannot be a directory.
   */
  static open(options: StateDatabaseOptions): StateDatabase {
    const { directory, clock, log, bootId = readBootTime()?.id ?? "unknown" } = options;
    const path = join(directory, FILE_NAME);
    const boot = new BootDirectory(options.bootDirectory, directory, bootId);
    let lock: DirectoryLock | undefined;
    let marker: GapMarker | undefined;
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      lock = DirectoryLock.take(directory, clock.now());
      marker = new GapMarker(directory);
      const { opened, aside } = openUsable({ path, bootId, now: clock.now() }, log);
      return new StateDatabase(opened, path, options, {
        lock,
        marker,
        setAside: aside,
        trouble: undefined,
        boot,
      });
    } catch (error) {
      if (!isDiskTrouble(error)) {
        marker?.[Symbol.dispose]();
        lock?.[Symbol.dispose]();
        throw openError(directory, error);
      }
      const trouble = messageOf(error);
      log.error(
        { errorId: StateNotWritable.id, err: error, path },
        "failed to open the state database for writing, using an in-memory copy",
      );
      return new StateDatabase(openUsableInMemory(path, log), path, options, {
        // Even if the disk is full, two agents must not evict pods from one node.
        lock,
        marker,
        setAside: undefined,
        trouble,
        boot,
      });
    }
  }

  /**
   * Runs `work` in one transaction: either everything is committed, or nothing.
   * @param store the store that writes, if it writes everything again after a failure; undefined for a store
   * that rejects changes it cannot write
   * @param isLast whether the store has nothing more to write
   */
  transaction<T>(work: () => T, store?: ContinuedStore, isLast = true): T {
    try {
      this.connection.exec("BEGIN IMMEDIATE");
      const result = work();
      this.#continuity.counting();
      this.coverage.saving();
      this.connection.exec("COMMIT");
      this.coverage.saved();
      this.#continuity.committed(isLast ? store : undefined);
      return result;
    } catch (error) {
      this.#continuity.failed(store);
      // If the disk is full, SQLite rolls back itself. A second ROLLBACK would hide the first error.
      if (this.connection.isTransaction) this.connection.exec("ROLLBACK");
      throw error;
    }
  }

  // Writes the boot, the gap in the records, the flag for outdated reports and the new ID in one transaction:
  // a later start finds all of them or none. On a full disk, it finds the earlier boot and ID.
  #begin({ bootId }: BootDirectory): void {
    try {
      this.transaction(() =>
        this.run(
          `INSERT INTO boot (one, id, reports_outdated) VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE
           SET id = excluded.id, reports_outdated = max(reports_outdated, excluded.reports_outdated)`,
          bootId,
          this.mayHaveLostCommits ? 1 : 0,
        ),
      );
    } catch {}
  }

  /** Runs a statement, which is prepared once per text. Returns the number of changed rows. */
  run(sql: string, ...values: SQLInputValue[]): number {
    return Number(this.#prepare(sql).run(...values).changes);
  }

  /**
   * Inserts a row, by column; undefined values are stored as NULL.
   * @param otherwise what happens if a row with the same key exists
   */
  insert(
    table: string,
    row: Readonly<Record<string, SQLInputValue | undefined>>,
    otherwise: "ABORT" | "IGNORE" | "REPLACE" = "ABORT",
  ): void {
    const columns = Object.keys(row);
    const places = columns.map(() => "?").join(", ");
    const values = Object.values(row).map((value) => value ?? null);
    this.run(`INSERT OR ${otherwise} INTO ${table} (${columns.join(", ")}) VALUES (${places})`, ...values);
  }

  /** Returns all rows of a query. Its columns must have the names of the properties of `Row`. */
  all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[];
  }

  /** Returns the first row of a query. Undefined if there is none. */
  first<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#prepare(sql).get(...values) as Row | undefined;
  }

  /** Iterates over the rows of a query. Iterations may overlap. */
  each<Row>(sql: string, ...values: SQLInputValue[]): IterableIterator<Row> {
    return this.connection.prepare(sql).iterate(...values) as IterableIterator<Row>;
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.connection.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  /** Whether the database is proven to be the one that the previous agent left: see `Continuity`. */
  get isProven(): boolean {
    return this.#continuity.standing === "newest";
  }

  /** Returns whether a store contains everything that the previous agent published. */
  standingOf(store: ContinuedStore): Standing {
    return this.#continuity.of(store);
  }

  /** Whether commits survive the agent. */
  get isPersistent(): boolean {
    return this.#disk.trouble === undefined && !this.#wasRemoved;
  }

  /** For state that must be known even if the database could not be written. */
  get bootDirectory(): BootDirectory {
    return this.#disk.boot;
  }

  /**
   * Fails while the state would be lost when the agent exits: it is kept in memory, or its file was removed.
   */
  healthCheck(): HealthCheck {
    return { name: "StateDatabaseReady", kind: "ready", check: () => this.#health() };
  }

  /**
   * When the previous holder of the directory last called `showAlive`, in milliseconds since the epoch.
   * Undefined if unknown.
   */
  get aliveBefore(): number | undefined {
    return this.#disk.lock?.aliveBefore;
  }

  /**
   * Records that the agent is alive.
   * @param now milliseconds since the epoch
   */
  showAlive(now: number): void {
    this.#disk.lock?.showAlive(now);
  }

  close(): void {
    if (this.connection.isOpen) this.connection.close();
    this.#mark[Symbol.dispose]();
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
      return { ok: false, message, errorId: StateNotWritable.id };
    }
    if (this.#inode === inodeOf(this.#path)) return { ok: true, message: this.#path };
    if (!this.#wasRemoved) {
      this.#log.error(
        { errorId: StateRemoved.id, path: this.#path },
        "state database was removed or replaced while the agent is running",
      );
    }
    this.#wasRemoved = true;
    const message = `${this.#path} was removed or replaced while the agent is running: new state is lost when the agent exits; restart it`;
    return { ok: false, message, errorId: StateRemoved.id };
  }
}

/** Returns the largest ID that any row of a table with AUTOINCREMENT has had; 0 before the first row. */
export function lastIdOf(database: StateDatabase, table: string): number {
  return database.first<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = ?", table)?.seq ?? 0;
}

function inodeOf(path: string): bigint | undefined {
  try {
    return statSync(path, { bigint: true }).ino;
  } catch {
    return undefined;
  }
}

function openError(directory: string, error: unknown): unknown {
  if (error instanceof NodekeeperError) return error;
  return new StateDirectoryUnusable({ directory }, { cause: error });
}

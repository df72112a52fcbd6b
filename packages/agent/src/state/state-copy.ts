import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { RecordedStateUnreadable, StateOfNewerVersion } from "@nodekeeper/api/errors";
import { type Clock, messageOf, silentLogger } from "@nodekeeper/core/lib";
import { FILE_NAME, StateDatabase } from "./database.ts";
import { MARKER_FILE } from "./gap-marker.ts";

// An agent writes for a few milliseconds every few seconds.
const MOST_TRIES = 10;
const PAUSE_MS = 100;

/**
 * A private copy of the database in a state directory. It is in a temporary directory, which `close` removes.
 * The state directory is only read, so an agent that uses it now or later is not affected.
 */
export class StateCopy implements Disposable {
  readonly database: StateDatabase;
  readonly #directory: string;

  private constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    try {
      this.database = StateDatabase.open({ directory, clock, log: silentLogger, isCopy: true });
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  /** Creates an empty copy to fill. */
  static empty(clock: Clock): StateCopy {
    return new StateCopy(newDirectory(), clock);
  }

  /**
   * Copies the database of a state directory. The path may also be the database file. Throws `notFound` if
   * there is none, `corrupt` if it cannot be read, `unsupported` if a newer agent wrote it, and `unavailable`
   * if a running agent writes to it continuously.
   */
  static async of(path: string, clock: Clock): Promise<StateCopy> {
    const file = basename(path) === FILE_NAME ? path : join(path, FILE_NAME);
    if (!existsSync(file))
      throw new RecordedStateUnreadable(
        { problem: `${dirname(file)} has no ${FILE_NAME}` },
        { code: "notFound" },
      );
    const directory = newDirectory();
    try {
      await copyStable(file, join(directory, FILE_NAME), clock);
      const marker = join(dirname(file), MARKER_FILE);
      if (existsSync(marker)) copyFileSync(marker, join(directory, MARKER_FILE));
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
    const copy = new StateCopy(directory, clock);
    const { setAside } = copy.database;
    if (setAside === undefined) return copy;
    copy.close();
    if (setAside.includes(".schema-")) {
      throw new StateOfNewerVersion({ file });
    }
    throw new RecordedStateUnreadable(
      { problem: `${file} can't be read: it is not a state database, or it is corrupt` },
      { code: "corrupt" },
    );
  }

  close(): void {
    this.database.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), "nodekeeper-read-"));
}

// The file and its write-ahead log must be consistent. If either changes meanwhile, both are copied again.
async function copyStable(file: string, target: string, clock: Clock): Promise<void> {
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const before = stampOf(file);
    try {
      copyFileSync(file, target);
      rmSync(`${target}-wal`, { force: true });
      if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${target}-wal`);
    } catch (error) {
      throw new RecordedStateUnreadable(
        { problem: `${file} can't be copied: ${messageOf(error)}` },
        { cause: error },
      );
    }
    if (stampOf(file) === before) return;
    await clock.sleep(PAUSE_MS);
  }
  throw new RecordedStateUnreadable({
    problem: `${file} is written continuously; ask the agent that writes it (--server)`,
  });
}

function stampOf(file: string): string {
  return [file, `${file}-wal`]
    .map((path) => {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
      return stat ? `${stat.ino} ${stat.size} ${stat.mtimeNs}` : "none";
    })
    .join("; ");
}

import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Clock, messageOf, NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import { StateDatabase } from "./database.ts";
import { MARKER_FILE } from "./gap-marker.ts";

const FILE_NAME = "nodekeeper.db";
// An agent writes for some milliseconds every few seconds.
const MOST_TRIES = 10;
const PAUSE_MS = 100;

/**
 * A private copy of a state directory's database, in a temporary folder that `close` removes. The directory itself is
 * only read: an agent that uses it, or is started on it later, is not affected.
 */
export class StateCopy implements Disposable {
  readonly database: StateDatabase;
  readonly #folder: string;

  private constructor(folder: string, clock: Clock) {
    this.#folder = folder;
    try {
      this.database = StateDatabase.open({ directory: folder, clock, log: silentLogger, isCopy: true });
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** An empty one, to be filled. */
  static empty(clock: Clock): StateCopy {
    return new StateCopy(newFolder(), clock);
  }

  /**
   * Of a state directory, or the database file in it. Throws `notFound` where there is none, `corrupt` where it can't
   * be read, `unsupported` where a newer agent wrote it, `unavailable` where a running agent writes it continuously.
   */
  static async of(path: string, clock: Clock): Promise<StateCopy> {
    const file = basename(path) === FILE_NAME ? path : join(path, FILE_NAME);
    if (!existsSync(file))
      throw new NodekeeperError("notFound", `${dirname(file)} holds no ${FILE_NAME}`, { id: "NK1107" });
    const folder = newFolder();
    try {
      await copyStable(file, join(folder, FILE_NAME), clock);
      const marker = join(dirname(file), MARKER_FILE);
      if (existsSync(marker)) copyFileSync(marker, join(folder, MARKER_FILE));
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
    const copy = new StateCopy(folder, clock);
    const { setAside } = copy.database;
    if (setAside === undefined) return copy;
    copy.close();
    if (setAside.includes(".schema-")) {
      throw new NodekeeperError("unsupported", `${file} was written by a newer nodekeeper`, { id: "NK1104" });
    }
    throw new NodekeeperError(
      "corrupt",
      `${file} can't be read: it is not a state database, or it is corrupt`,
      { id: "NK1107" },
    );
  }

  close(): void {
    this.database.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), "nodekeeper-read-"));
}

// The file and its write-ahead log belong together: where either changes meanwhile, both are copied again.
async function copyStable(file: string, target: string, clock: Clock): Promise<void> {
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const before = stampOf(file);
    try {
      copyFileSync(file, target);
      rmSync(`${target}-wal`, { force: true });
      if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${target}-wal`);
    } catch (error) {
      throw new NodekeeperError("unavailable", `${file} can't be copied: ${messageOf(error)}`, {
        id: "NK1107",
        cause: error,
      });
    }
    if (stampOf(file) === before) return;
    await clock.sleep(PAUSE_MS);
  }
  throw new NodekeeperError(
    "unavailable",
    `${file} is written continuously; ask the agent that writes it (--server)`,
    { id: "NK1107" },
  );
}

function stampOf(file: string): string {
  return [file, `${file}-wal`]
    .map((path) => {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
      return stat ? `${stat.ino} ${stat.size} ${stat.mtimeNs}` : "none";
    })
    .join("; ");
}

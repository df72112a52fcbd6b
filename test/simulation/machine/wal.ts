import { closeSync, existsSync, openSync, readFileSync, readSync, statSync, writeFileSync } from "node:fs";

interface Commit {
  /** Number of frames in the log with it. */
  frames: number;
  /** Virtual milliseconds. */
  at: number;
}

// Formats of SQLite: the header of the log, that of a frame, and that of the index with its checkpoint.
const HEADER = 32;
const FRAME_HEADER = 24;
const INDEX = 100;

/**
 * The write-ahead log of a database, and what SQLite has synced of it with `synchronous = NORMAL`: its header when it is
 * begun, and its frames before a checkpoint writes them into the file. All later commits may be lost with the power,
 * in reverse order.
 */
export class WriteAheadLog {
  readonly #path: string;
  #salts = "";
  #synced = 0;
  /** Time of the last commit before this log was begun again. */
  #begunAt = 0;
  #commits: Commit[] = [];

  /** @param path of the database */
  constructor(path: string) {
    this.#path = path;
  }

  /** Virtual milliseconds of the last commit that is left; 0 before the first. */
  get lastCommitAt(): number {
    return this.#commits.at(-1)?.at ?? this.#begunAt;
  }

  /** Called after each commit, while the database is open. */
  committed(at: number): void {
    const index = startOf(`${this.#path}-shm`);
    if (!index) return;
    const salts = index.toString("hex", 32, 40);
    if (salts !== this.#salts) {
      this.#begunAt = this.lastCommitAt;
      this.#salts = salts;
      this.#synced = 0;
      this.#commits = [];
    }
    this.#commits.push({ frames: index.readUInt32LE(16), at });
    this.#synced = Math.max(this.#synced, index.readUInt32LE(96));
  }

  /**
   * Loses the last commits, as far as they are not synced. The database must not be open.
   * @param most number of commits to lose, at least 1
   * @param isTorn whether a part of the first lost one remains
   * @returns whether any was lost
   */
  lose(most: number, isTorn: boolean): boolean {
    const file = `${this.#path}-wal`;
    if (!existsSync(file) || statSync(file).size <= HEADER) return false;
    const log = readFileSync(file);
    const size = FRAME_HEADER + log.readUInt32BE(8);
    const ends = commitsOf(log, size).filter((frames) => frames > this.#synced);
    if (ends.length === 0) return false;
    const left = ends.at(-1 - most) ?? this.#synced;
    const torn = isTorn ? size >> 1 : 0;
    writeFileSync(file, log.subarray(0, HEADER + left * size + torn));
    this.#commits = this.#commits.filter(({ frames }) => frames <= left);
    return true;
  }
}

/** Returns the number of frames up to each commit. */
function commitsOf(log: Buffer, size: number): number[] {
  const salts = log.toString("hex", 16, 24);
  const ends: number[] = [];
  for (let at = HEADER, frames = 1; at + size <= log.length; at += size, frames++) {
    if (log.toString("hex", at + 8, at + 16) !== salts) break;
    if (log.readUInt32BE(at + 4) !== 0) ends.push(frames);
  }
  return ends;
}

function startOf(path: string): Buffer | undefined {
  if (!existsSync(path)) return undefined;
  const file = openSync(path, "r");
  const bytes = Buffer.alloc(INDEX);
  const length = readSync(file, bytes, 0, INDEX, 0);
  closeSync(file);
  return length === INDEX ? bytes : undefined;
}

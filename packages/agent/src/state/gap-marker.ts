import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Beside the database, in the state directory. */
export const MARKER_FILE = "nodekeeper.gap";
// Fixed, so that the file is overwritten in place: that needs no space on a full disk.
const LENGTH = 64;

/**
 * A file that has, for the next agent, since when records could not be written. It is preallocated: setting it works on a full
 * disk, on which the database can't be written. Not on a read-only one: no method throws.
 */
export class GapMarker implements Disposable {
  /** What the agent before left, wall milliseconds; undefined if it wrote all its records. */
  readonly before: number | undefined;
  #file: number | undefined;

  constructor(directory: string) {
    const path = join(directory, MARKER_FILE);
    this.before = readMarker(path);
    this.#file = openPreallocated(path);
    if (this.before === undefined) this.clear();
  }

  /** Records can't be written. @param since wall milliseconds of the first of them */
  set(since: number): void {
    this.#write(`records are missing since ${Math.floor(since)}`);
  }

  /** All records are written. */
  clear(): void {
    this.#write("records are complete");
  }

  #write(text: string): void {
    if (this.#file === undefined) return;
    try {
      writeSync(this.#file, `${text.padEnd(LENGTH - 1)}\n`, 0);
      fdatasyncSync(this.#file);
    } catch {}
  }

  [Symbol.dispose](): void {
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) closeSync(file);
  }
}

function openPreallocated(path: string): number | undefined {
  for (const flags of ["r+", "wx+"]) {
    try {
      return openSync(path, flags, 0o600);
    } catch {}
  }
  return undefined;
}

function readMarker(path: string): number | undefined {
  try {
    const [, since] = /^records are missing since (\d{1,16})\s*$/.exec(readFileSync(path, "utf8")) ?? [];
    return since === undefined ? undefined : Number(since);
  } catch {
    return undefined;
  }
}

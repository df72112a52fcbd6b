import { join } from "node:path";
import { InPlaceFile } from "./in-place-file.ts";

/** In the state directory, next to the database. */
export const MARKER_FILE = "nodekeeper.gap";
const LENGTH = 64;

/**
 * A file that records since when records could not be written, for the next agent. It can be set on a full
 * disk, on which the database is not writable, but not on a read-only one. No method throws.
 */
export class GapMarker implements Disposable {
  /**
   * The time that the previous agent recorded, in milliseconds since the epoch. Undefined if it wrote all its
   * records.
   */
  readonly before: number | undefined;
  readonly #file: InPlaceFile;

  constructor(directory: string) {
    this.#file = new InPlaceFile(join(directory, MARKER_FILE), LENGTH);
    const [, since] = /^records are missing since (\d{1,16})\s*$/.exec(this.#file.read()) ?? [];
    if (since === undefined) this.clear();
    else this.before = Number(since);
  }

  /**
   * Called when records cannot be written.
   * @param since time of the first of them, milliseconds since the epoch
   */
  set(since: number): void {
    this.#file.write(`records are missing since ${Math.floor(since)}`, true);
  }

  /** Called when all records are written. */
  clear(): void {
    this.#file.write("records are complete", true);
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }
}

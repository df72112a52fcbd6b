import { closeSync, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";

/**
 * A small file of fixed length that is overwritten in place, which needs no space on a full disk. No method
 * throws.
 */
export class InPlaceFile implements Disposable {
  readonly #path: string;
  readonly #length: number;
  #file: number | undefined;

  /** @param length in bytes. A kill during a write leaves either the old or the new text */
  constructor(path: string, length: number) {
    this.#path = path;
    this.#length = length;
    for (const flags of ["r+", "wx+"]) {
      try {
        this.#file ??= openSync(path, flags, 0o600);
      } catch {}
    }
  }

  /** Whether the file is writable. */
  get isOpen(): boolean {
    return this.#file !== undefined;
  }

  /** Returns the text, even if the file is not writable; empty if there is none. */
  read(): string {
    try {
      return readFileSync(this.#path, "utf8");
    } catch {
      return "";
    }
  }

  /**
   * Replaces the text. Returns whether that succeeded.
   * @param isSynced whether the text must survive a power cut
   */
  write(text: string, isSynced = false): boolean {
    if (this.#file === undefined) return false;
    try {
      writeSync(this.#file, `${text.padEnd(this.#length - 1)}\n`, 0);
      if (isSynced) fdatasyncSync(this.#file);
      return true;
    } catch {
      return false;
    }
  }

  [Symbol.dispose](): void {
    const file = this.#file;
    this.#file = undefined;
    if (file !== undefined) closeSync(file);
  }
}

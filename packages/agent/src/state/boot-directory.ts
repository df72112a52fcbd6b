import { createHash } from "node:crypto";
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { InPlaceFile } from "./in-place-file.ts";

/**
 * Files in the directory of the local API's socket, which is on a tmpfs. They survive a restart of the agent
 * but not of the machine, and can be written if the state directory is full or read-only, or was replaced by
 * an older copy. Each file names the boot and the state directory it belongs to. No method throws.
 */
export class BootDirectory {
  /** Changes with each boot of the machine. */
  readonly bootId: string;
  readonly #prefix: string | undefined;

  /**
   * @param path if undefined, nothing is stored. Ignored if it is inside the state directory, because a copy
   * of the state directory would contain it
   */
  constructor(path: string | undefined, stateDirectory: string, bootId: string) {
    this.bootId = bootId;
    if (path === undefined || isWithin(path, stateDirectory)) return;
    const id = createHash("sha256").update(resolve(stateDirectory)).digest("hex").slice(0, 12);
    this.#prefix = join(path, `.state-${id}`);
    try {
      // The mode of the socket's directory.
      mkdirSync(path, { recursive: true, mode: 0o750 });
    } catch {}
  }

  /** Opens a small text that is written often. It is overwritten in place and may have up to 500 bytes. */
  openMark(name: string): BootMark {
    return new BootMark(this.#pathOf(name), this.bootId);
  }

  /**
   * Returns the text written by `write` during this boot. Undefined if there is none, or if the file is not
   * writable.
   */
  read(name: string): string | undefined {
    const path = this.#pathOf(name);
    if (path === undefined) return undefined;
    try {
      closeSync(openSync(path, "r+"));
      const text = readFileSync(path, "utf8");
      const [bootId, ...lines] = text.split("\n");
      return bootId === this.bootId ? lines.join("\n") : undefined;
    } catch {
      return undefined;
    }
  }

  /** Replaces a text. On failure, removes the previous text and returns false. */
  write(name: string, text: string): boolean {
    const path = this.#pathOf(name);
    if (path === undefined) return false;
    try {
      const file = openSync(`${path}.new`, "w", 0o600);
      try {
        // Unlike `writeSync`, throws if only the beginning fits on the file system.
        writeFileSync(file, `${this.bootId}\n${text}`);
      } finally {
        closeSync(file);
      }
      renameSync(`${path}.new`, path);
      return true;
    } catch {
      remove(`${path}.new`);
      remove(path);
      return false;
    }
  }

  #pathOf(name: string): string | undefined {
    return this.#prefix && `${this.#prefix}.${name}`;
  }
}

const MARK_LENGTH = 600;

/** See `BootDirectory.openMark`. */
export class BootMark implements Disposable {
  /** The text left during this boot. Undefined if there is none, or if the file is not writable. */
  readonly before: string | undefined;
  readonly #path: string | undefined;
  readonly #bootId: string;
  readonly #file: InPlaceFile | undefined;

  constructor(path: string | undefined, bootId: string) {
    this.#path = path;
    this.#bootId = bootId;
    if (path === undefined) return;
    this.#file = new InPlaceFile(path, MARK_LENGTH);
    if (!this.#file.isOpen) {
      remove(path);
      return;
    }
    const [id, text] = this.#file.read().split("\n");
    if (id === bootId) this.before = text;
  }

  /** Overwrites the text. On failure, removes the file. */
  write(text: string): void {
    if (!this.#file?.isOpen || this.#file.write(`${this.#bootId}\n${text}\n`)) return;
    this.#file[Symbol.dispose]();
    remove(this.#path!);
  }

  [Symbol.dispose](): void {
    this.#file?.[Symbol.dispose]();
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {}
}

function isWithin(path: string, directory: string): boolean {
  return `${resolve(path)}${sep}`.startsWith(`${resolve(directory)}${sep}`);
}

import { execFileSync } from "node:child_process";
import { closeSync, cpSync, mkdirSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const SIZE_MIB = 64;

/** A file system of its own in memory that can be filled up, or mounted read-only. Needs root. */
export class SmallDisk implements Disposable {
  readonly directory: string;
  readonly #filler: string;

  private constructor(directory: string) {
    this.directory = directory;
    this.#filler = join(directory, "filler");
  }

  /** Mounts it at the directory, which is made; undefined if that is not permitted. */
  static mount(directory: string): SmallDisk | undefined {
    mkdirSync(directory, { recursive: true });
    try {
      mount("-t", "tmpfs", "-o", `size=${SIZE_MIB}m,mode=700`, "tmpfs", directory);
    } catch {
      return undefined;
    }
    return new SmallDisk(directory);
  }

  /** Leaves no byte free. */
  fill(): void {
    const block = Buffer.alloc(4_096);
    const file = openSync(this.#filler, "w");
    try {
      for (let written = 0; written < SIZE_MIB * 2 ** 20; ) written += writeSync(file, block);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(file);
    }
  }

  /** Frees what `fill` took. */
  empty(): void {
    rmSync(this.#filler, { force: true });
  }

  /** Throws while a process has a file open for writing. */
  makeReadOnly(): void {
    mount("-o", "remount,ro", this.directory);
  }

  makeWritable(): void {
    mount("-o", "remount,rw", this.directory);
  }

  /** Copies all that is on it, to be restored. */
  copyTo(directory: string): void {
    cpSync(this.directory, directory, { recursive: true });
  }

  /** Replaces all that is on it by a copy. */
  restore(directory: string): void {
    for (const name of readdirSync(this.directory)) rmSync(join(this.directory, name), { recursive: true });
    cpSync(directory, this.directory, { recursive: true });
  }

  [Symbol.dispose](): void {
    // Lazily: the agent may have it open still.
    execFileSync("umount", ["-l", this.directory]);
  }
}

function mount(...args: readonly string[]): void {
  execFileSync("mount", args, { stdio: "ignore" });
}

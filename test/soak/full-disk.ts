import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const SIZE_MIB = 64;

/** A file system of its own in memory that can be filled up. Needs root. */
export class SmallDisk implements Disposable {
  readonly folder: string;
  readonly #filler: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.#filler = join(folder, "filler");
  }

  /** Mounts it at the folder, which is made; undefined where that is not permitted. */
  static mount(folder: string): SmallDisk | undefined {
    mkdirSync(folder, { recursive: true });
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${SIZE_MIB}m,mode=700`, "tmpfs", folder], {
        stdio: "ignore",
      });
    } catch {
      return undefined;
    }
    return new SmallDisk(folder);
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

  /** Gives back what `fill` took. */
  empty(): void {
    rmSync(this.#filler, { force: true });
  }

  [Symbol.dispose](): void {
    // Lazily: the agent may have it open still.
    execFileSync("umount", ["-l", this.folder]);
  }
}

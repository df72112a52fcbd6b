import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { NodekeeperError } from "@nodekeeper/core/lib";

// The longest file is memory.numa_stat on machines with many nodes: a few kilobytes.
const FILE_CAP = 64 * 1024;
// Sampled several times a second. Opening and closing such a file costs more than reading it.
const keptOpen = /^\/proc\/(meminfo|pressure\/\w+)$/;
// Reading a device that was removed after it was listed fails with ENODEV or ENXIO.
const absentCodes = new Set(["ENOENT", "ENOTDIR", "ENODEV", "ENXIO"]);

/** Returns undefined if the error means that the file is absent. Throws a NodekeeperError for other errors. */
export function absentOrThrow(place: string, error: unknown): undefined {
  if (error instanceof NodekeeperError) throw error;
  const code = (error as NodeJS.ErrnoException).code ?? "";
  if (absentCodes.has(code)) return undefined;
  const kind = code === "EACCES" || code === "EPERM" ? "forbidden" : "unavailable";
  throw new NodekeeperError(kind, `${place} can't be read`, { cause: error });
}

/**
 * Synchronous reads of small files that the kernel generates in memory, such as cgroup files and /proc/meminfo. A read
 * takes 4 µs, compared with 50 µs of CPU on libuv's threads, and a round reads hundreds. Do not use it for files that
 * are backed by a disk or device. Callers that read many files use `inSlices`. Returns undefined for absent files.
 * Other failures are NodekeeperErrors.
 */
export class KernelFiles {
  readonly #prefix: string;
  readonly #buffer = Buffer.allocUnsafe(FILE_CAP + 1);
  /** Descriptors of the files that stay open, by path. */
  readonly #kept = new Map<string, number>();

  /** @param prefix root directory without a trailing slash */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Returns the content of a file. Throws `exhausted` above 64 KiB. */
  text(path: string): string | undefined {
    // The kernel returns such a file in one read if the buffer is large enough, so no second read checks for its end.
    return this.#open(path, FILE_CAP, (piece) => piece());
  }

  /**
   * Returns the content of a file that the kernel returns in several reads, such as /proc/zoneinfo. Throws `exhausted`
   * above `cap` bytes.
   */
  longText(path: string, cap: number): string | undefined {
    return this.#open(path, cap, (piece) => {
      let text = "";
      for (;;) {
        const more = piece(text.length);
        if (more === "") return text;
        text += more;
      }
    });
  }

  /** Returns the names of a directory's entries. */
  names(path: string): string[] | undefined {
    return this.#attempt(path, (place) => readdirSync(place));
  }

  #open(
    path: string,
    cap: number,
    read: (piece: (lengthSoFar?: number) => string) => string,
  ): string | undefined {
    return this.#attempt(path, (place) => {
      const kept = this.#kept.get(path);
      const descriptor = kept ?? openSync(place, constants.O_RDONLY | constants.O_NONBLOCK);
      let isKept = false;
      try {
        const text = read((lengthSoFar = 0) => {
          const position = kept === undefined ? null : lengthSoFar;
          const length = readSync(descriptor, this.#buffer, 0, this.#buffer.length, position);
          if (lengthSoFar + length > cap)
            throw new NodekeeperError("exhausted", `${place} is longer than ${cap} bytes`);
          return this.#buffer.toString("latin1", 0, length);
        });
        // A file that the kernel generates has no size. Others could be replaced.
        isKept = kept !== undefined || (keptOpen.test(path) && fstatSync(descriptor).size === 0);
        if (isKept) this.#kept.set(path, descriptor);
        return text;
      } finally {
        if (!isKept) {
          this.#kept.delete(path);
          closeSync(descriptor);
        }
      }
    });
  }

  #attempt<T>(path: string, work: (place: string) => T): T | undefined {
    const place = this.#prefix + path;
    try {
      return work(place);
    } catch (error) {
      return absentOrThrow(place, error);
    }
  }
}

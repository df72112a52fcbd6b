import { closeSync, constants, openSync, readdirSync, readSync, statSync } from "node:fs";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { absentOrThrow } from "./absent.ts";

// Text of cgroup files: memory.numa_stat of a machine with many nodes is the longest, some kilobytes.
const FILE_CAP = 64 * 1024;

/**
 * Small files that the kernel makes up in memory, read on this thread: 4 µs each, where libuv's threads cost 50 µs of
 * CPU, and there are hundreds of them. Only for what has no disk and no device behind it: cgroups, /proc/meminfo and
 * the like. Who reads many works in slices (`inSlices`). What is absent is undefined; other failures are NodekeeperErrors.
 */
export class KernelFiles {
  readonly #prefix: string;
  readonly #buffer = Buffer.allocUnsafe(FILE_CAP + 1);

  /** @param prefix the root without a slash at its end */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The text of a file. Throws `exhausted` for one over 64 KiB. */
  text(path: string): string | undefined {
    const place = this.#prefix + path;
    try {
      const descriptor = openSync(place, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        return this.#read(descriptor, place);
      } finally {
        closeSync(descriptor);
      }
    } catch (error) {
      return absentOrThrow(place, error);
    }
  }

  /** The text of a file that the kernel hands out in several pieces, such as /proc/zoneinfo. Throws `exhausted` above `cap` bytes. */
  longText(path: string, cap: number): string | undefined {
    const place = this.#prefix + path;
    try {
      const descriptor = openSync(place, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        let text = "";
        for (;;) {
          const length = readSync(descriptor, this.#buffer, 0, this.#buffer.length, null);
          if (length === 0) return text;
          text += this.#buffer.toString("latin1", 0, length);
          if (text.length > cap)
            throw new NodekeeperError("exhausted", `${place} is longer than ${cap} bytes`);
        }
      } finally {
        closeSync(descriptor);
      }
    } catch (error) {
      return absentOrThrow(place, error);
    }
  }

  /** The names in a directory. */
  names(path: string): string[] | undefined {
    const place = this.#prefix + path;
    try {
      return readdirSync(place);
    } catch (error) {
      return absentOrThrow(place, error);
    }
  }

  /** How many directories a directory has, where its link count is that number; undefined where it does not. */
  directoryCount(path: string): number | undefined {
    const place = this.#prefix + path;
    try {
      const { nlink } = statSync(place);
      return nlink < 2 ? undefined : nlink - 2;
    } catch (error) {
      return absentOrThrow(place, error);
    }
  }

  // The kernel gives such a file whole to one read that has room for it: a read less for each of hundreds of files.
  #read(descriptor: number, place: string): string {
    const length = readSync(descriptor, this.#buffer, 0, this.#buffer.length, null);
    if (length > FILE_CAP)
      throw new NodekeeperError("exhausted", `${place} is longer than ${FILE_CAP} bytes`);
    return this.#buffer.toString("latin1", 0, length);
  }
}

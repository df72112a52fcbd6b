import { closeSync, constants, openSync, readdirSync, readSync, statSync } from "node:fs";
import { NodekeeperError } from "../lib/index.ts";
import { absentOrThrow } from "./host-files.ts";

// Text of cgroup files: memory.numa_stat of a machine with many nodes is the longest, some kilobytes.
const FILE_CAP = 64 * 1024;

/**
 * Small files that the kernel makes up in memory, read on this thread: 4 µs each, where libuv's threads cost 50 µs of
 * CPU, and there are hundreds of them. Only for cgroups: no disk and no device is behind them. Callers work in slices
 * (`inSlices`). What is absent is undefined; other failures are NodekeeperErrors.
 */
export class KernelFiles {
  readonly #prefix: string;
  readonly #buffer = Buffer.allocUnsafe(FILE_CAP + 1);

  /** @param root as of HostFiles */
  constructor(root: string) {
    this.#prefix = root.replace(/\/+$/, "");
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
    } catch (thrown) {
      return absentOrThrow(place, thrown);
    }
  }

  /** The names of the directories in a directory. */
  directories(path: string): string[] | undefined {
    const place = this.#prefix + path;
    try {
      const entries = readdirSync(place, { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
    } catch (thrown) {
      return absentOrThrow(place, thrown);
    }
  }

  /** How many directories a directory has, where its link count tells; undefined where it does not. */
  directoryCount(path: string): number | undefined {
    const place = this.#prefix + path;
    try {
      const { nlink } = statSync(place);
      return nlink < 2 ? undefined : nlink - 2;
    } catch (thrown) {
      return absentOrThrow(place, thrown);
    }
  }

  // A seq_file may give less than asked for: only an empty read is the end.
  #read(descriptor: number, place: string): string {
    let length = 0;
    for (;;) {
      const bytesRead = readSync(descriptor, this.#buffer, length, this.#buffer.length - length, null);
      length += bytesRead;
      if (length > FILE_CAP)
        throw new NodekeeperError("exhausted", `${place} is longer than ${FILE_CAP} bytes`);
      if (bytesRead === 0) return this.#buffer.toString("latin1", 0, length);
    }
  }
}

import { constants, type StatsFs } from "node:fs";
import { type FileHandle, open, readdir, readlink, statfs } from "node:fs/promises";
import { NodekeeperError, Semaphore } from "@nodekeeper/core/lib";
import { absentOrThrow } from "./absent.ts";
import { KernelFiles } from "./kernel-files.ts";

/** Largest file read unless the caller sets another limit, bytes. */
const DEFAULT_FILE_CAP = 64 * 1024;
/** Most entries of a directory that are looked at. */
const MAX_DIRECTORY_ENTRIES = 16_384;

// libuv has four threads for files: two reads that hang in a driver leave two for all other files.
const PARALLEL_READS = 2;
// A file system whose server is unreachable does not answer: one thread at most waits for it, apart from the files.
const PARALLEL_FILESYSTEMS = 1;
const CHUNK_BYTES = 16 * 1024;

export interface ReadOptions {
  /** Bytes; default 64 KiB. */
  cap?: number;
  /** Take the first `cap` bytes of a longer file instead of refusing it. */
  truncate?: boolean;
}

/** Bounded reads below a root directory. What is absent is undefined; other failures are NodekeeperErrors. */
export class HostFiles {
  /** For small files that the kernel makes up in memory, on this thread. */
  readonly kernel: KernelFiles;
  readonly #prefix: string;
  readonly #limiter = new Semaphore({ permits: PARALLEL_READS });
  readonly #filesystems = new Semaphore({ permits: PARALLEL_FILESYSTEMS });

  /** @param root "/" for the machine itself, "/host" where a container has it mounted */
  constructor(root: string) {
    this.#prefix = root.replace(/\/+$/, "");
    this.kernel = new KernelFiles(this.#prefix);
  }

  /** The place of a machine's path below the root, for messages. */
  place(path: string): string {
    // Not path.join: "device/../numa_node" has to follow the link before it goes up.
    return `${this.#prefix}${path}`;
  }

  /** The text of a file, trimmed. */
  text(path: string, signal: AbortSignal, options: ReadOptions = {}): Promise<string | undefined> {
    return this.#attempt(path, signal, async (place) => {
      // Non-blocking, because opening a named pipe would otherwise wait for a writer.
      const handle = await open(place, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        return (await readUpTo(handle, place, options)).trim();
      } finally {
        await handle.close();
      }
    });
  }

  /** The names in a directory, sorted. */
  list(path: string, signal: AbortSignal): Promise<string[] | undefined> {
    return this.#attempt(path, signal, async (place) => {
      const names = await readdir(place);
      if (names.length > MAX_DIRECTORY_ENTRIES) {
        throw new NodekeeperError(
          "exhausted",
          `${place} has ${names.length} entries, more than ${MAX_DIRECTORY_ENTRIES}`,
        );
      }
      return names.sort();
    });
  }

  /** Where a symbolic link points. */
  link(path: string, signal: AbortSignal): Promise<string | undefined> {
    return this.#attempt(path, signal, (place) => readlink(place));
  }

  /** The state of the file system that holds a path. */
  filesystem(path: string, signal: AbortSignal): Promise<StatsFs | undefined> {
    return this.#attempt(path, signal, (place) => statfs(place), this.#filesystems);
  }

  async #attempt<T>(
    path: string,
    signal: AbortSignal,
    work: (place: string) => Promise<T>,
    limiter = this.#limiter,
  ): Promise<T | undefined> {
    const place = this.place(path);
    return await limiter.run(signal, async () => {
      try {
        return await work(place);
      } catch (error) {
        return absentOrThrow(place, error);
      }
    });
  }
}

// Files in /proc and /sys report a size of 0 or 4096, whatever they hold: read until the end or the cap.
async function readUpTo(handle: FileHandle, place: string, options: ReadOptions): Promise<string> {
  const cap = options.cap ?? DEFAULT_FILE_CAP;
  const chunks: Buffer[] = [];
  let total = 0;
  while (total <= cap) {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, cap + 1 - total));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) break;
    chunks.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
  }
  if (total > cap && !options.truncate) {
    throw new NodekeeperError("exhausted", `${place} is longer than ${cap} bytes`);
  }
  return Buffer.concat(chunks).subarray(0, cap).toString("utf8");
}

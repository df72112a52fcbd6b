import { closeSync, constants, openSync, read, type StatsFs } from "node:fs";
import { readdir, readlink, statfs } from "node:fs/promises";
import { promisify } from "node:util";
import { NodekeeperError, Semaphore } from "@nodekeeper/core/lib";
import { absentOrThrow, KernelFiles } from "./kernel-files.ts";

/** Default limit of a file's size, in bytes. */
const DEFAULT_FILE_CAP = 64 * 1024;
/** Maximum number of entries in a directory. */
const MAX_DIRECTORY_ENTRIES = 16_384;

// libuv has four I/O threads. If two reads hang in a driver, two threads remain for all other files.
const PARALLEL_READS = 2;
// statfs hangs if the server of a network file system is unreachable. A separate limit of one thread keeps files
// readable.
const PARALLEL_FILESYSTEMS = 1;
const CHUNK_BYTES = 16 * 1024;
// Reads of sysfs end at a page.
const PAGE_BYTES = 4 * 1024;

const readPiece = promisify(read);

export interface ReadOptions {
  /** Maximum size in bytes. Default 64 KiB. */
  cap?: number;
  /** Return the first `cap` bytes of a longer file instead of failing. */
  truncate?: boolean;
}

/** Bounded reads below a root directory. Returns undefined for absent files. Other failures are NodekeeperErrors. */
export class HostFiles {
  /** Synchronous reads of small files that the kernel generates in memory. */
  readonly kernel: KernelFiles;
  readonly #prefix: string;
  readonly #limiter = new Semaphore({ permits: PARALLEL_READS });
  readonly #filesystems = new Semaphore({ permits: PARALLEL_FILESYSTEMS });

  /** @param root "/" for the host itself, or its mount point in a container, such as "/host" */
  constructor(root: string) {
    this.#prefix = root.replace(/\/+$/, "");
    this.kernel = new KernelFiles(this.#prefix);
  }

  /** Returns the full path of a host path, for messages. */
  place(path: string): string {
    // Not path.join, which would collapse "device/../numa_node" without following the link.
    return `${this.#prefix}${path}`;
  }

  /**
   * Returns the content of a file in /proc or /sys, trimmed. Only the read uses a thread of the pool, because it may
   * wait for a driver. Opening and closing do not wait and are synchronous.
   */
  text(path: string, signal: AbortSignal, options: ReadOptions = {}): Promise<string | undefined> {
    return this.#attempt(path, signal, async (place) => {
      // O_NONBLOCK, because opening a named pipe would otherwise wait for a writer.
      const descriptor = openSync(place, constants.O_RDONLY | constants.O_NONBLOCK);
      try {
        return (await readUpTo(descriptor, place, { ...options, isAttribute: isAttribute(path) })).trim();
      } finally {
        closeSync(descriptor);
      }
    });
  }

  /** Returns the sorted names of a directory's entries. */
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

  /** Returns the target of a symbolic link. */
  link(path: string, signal: AbortSignal): Promise<string | undefined> {
    return this.#attempt(path, signal, (place) => readlink(place));
  }

  /** Returns the statistics of the file system that contains a path. */
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

// Files in /proc and /sys report a size of 0 or 4096 regardless of their content, so reads continue to the end or the
// cap. For an attribute of sysfs, the end is a piece of less than a page.
async function readUpTo(
  descriptor: number,
  place: string,
  options: ReadOptions & { isAttribute: boolean },
): Promise<string> {
  const cap = options.cap ?? DEFAULT_FILE_CAP;
  const chunks: Buffer[] = [];
  let total = 0;
  while (total <= cap) {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, cap + 1 - total));
    const { bytesRead } = await readPiece(descriptor, buffer, 0, buffer.length, null);
    if (bytesRead === 0) break;
    chunks.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
    if (options.isAttribute && bytesRead < PAGE_BYTES) break;
  }
  if (total > cap && !options.truncate) {
    throw new NodekeeperError("exhausted", `${place} is longer than ${cap} bytes`);
  }
  return Buffer.concat(chunks).subarray(0, cap).toString("utf8");
}

// Files of cgroups may have several records, of which a read returns as many as fit into a page.
function isAttribute(path: string): boolean {
  return path.startsWith("/sys/") && !path.startsWith("/sys/fs/");
}

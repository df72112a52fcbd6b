import type { BigIntStats, Dirent } from "node:fs";
import { mkdir, opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@nodekeeper/core/lib";

/** A socket file found by a scan. */
export interface FoundSocket {
  path: string;
  /** Identity of the file. A different value at the same path means that the file was re-created. */
  identity: string;
  /** Creation time of the file, nanoseconds since the epoch. */
  bornNs: bigint;
}

export interface ScanLimits {
  /** Maximum depth below a watched directory. Default: 8. */
  maxDepth: number;
  /** Maximum number of directories to walk and watch. */
  maxDirectories: number;
  /** Maximum number of entries to read per directory. */
  maxEntries: number;
  /** Maximum number of sockets to consider. */
  maxSockets: number;
}

export interface ScanResult {
  sockets: Map<string, FoundSocket>;
  /** Errors of watched directories that could not be created or read, by path. */
  failures: Map<string, string>;
  /** Errors of subdirectories that could not be read, by path. */
  unread: Map<string, string>;
  /** Descriptions of the entries that were skipped because of a limit. */
  overflows: string[];
}

/** A set of paths. */
export type Known = Pick<ReadonlySet<string>, "has">;

export interface ScanOptions {
  directories: readonly string[];
  limits: ScanLimits;
  /** Called before a directory is read, so that no change between the walk and the watch is missed. */
  onDirectory(path: string, identity: string): void;
  /** Sockets that are preferred if there are too many, so that new sockets do not displace them. */
  known: Known;
}

/** Number of directories that may still be walked, and the limit. */
interface Budget {
  directories: number;
  limit: number;
}

/**
 * Returns the sockets in and below the directories. Creates missing watched directories (mode 0750). Ignores names that
 * start with ".". Follows symlinks to sockets, but not to directories. Stats only directories, sockets, symlinks and
 * entries of unknown type. A subdirectory of a watched directory, with everything below it, may use at most half of the
 * directories and sockets, so that the user who owns it cannot exclude the sockets of others.
 */
export async function scanForSockets(options: ScanOptions): Promise<ScanResult> {
  const result: ScanResult = { sockets: new Map(), failures: new Map(), unread: new Map(), overflows: [] };
  const { maxDirectories, maxSockets } = options.limits;
  const walk = new Walk(options, result, { directories: maxDirectories, limit: maxDirectories });
  for (const directory of options.directories) {
    try {
      await mkdir(directory, { recursive: true, mode: 0o750 });
      await walk.into(directory, 0);
    } catch (error) {
      result.failures.set(directory, messageOf(error));
    }
  }
  for (const path of walk.candidates(maxSockets)) {
    const found = await socketAt(path);
    if (found) result.sockets.set(path, found);
  }
  return result;
}

/** Collects the paths that may be sockets, within a budget of directories. */
class Walk {
  readonly #options: ScanOptions;
  readonly #result: Pick<ScanResult, "overflows" | "unread">;
  readonly #budget: Budget;
  readonly #found: string[] = [];

  constructor(options: ScanOptions, result: Pick<ScanResult, "overflows" | "unread">, budget: Budget) {
    this.#options = options;
    this.#result = result;
    this.#budget = budget;
  }

  /**
   * Returns the paths found, at most `limit`.
   * @param directory named in the overflow; undefined for all watched directories
   */
  candidates(limit: number, directory?: string): string[] {
    if (this.#found.length <= limit) return this.#found;
    const where = directory === undefined ? "" : `${directory}: `;
    this.#result.overflows.push(
      `${where}${this.#found.length} sockets and symlinks found, only ${limit} are considered`,
    );
    const known = this.#found.filter((path) => this.#options.known.has(path));
    const others = this.#found.filter((path) => !this.#options.known.has(path)).sort();
    return [...known, ...others].slice(0, limit);
  }

  async into(directory: string, depth: number): Promise<void> {
    const { limits, onDirectory } = this.#options;
    const { overflows, unread } = this.#result;
    if (this.#budget.directories-- <= 0) {
      overflows.push(`${directory}: skipped, limit of ${this.#budget.limit} directories reached`);
      return;
    }
    onDirectory(directory, identityOf(await stat(directory, { bigint: true })));
    const subdirectories: string[] = [];
    let entries = 0;
    for await (const entry of await opendir(directory, { bufferSize: 1024 })) {
      if (++entries > limits.maxEntries) {
        overflows.push(`${directory}: only its first ${limits.maxEntries} entries are read`);
        break;
      }
      if (entry.name.startsWith(".")) continue;
      const path = join(directory, entry.name);
      if (entry.isDirectory()) subdirectories.push(path);
      else if (mayBeSocket(entry)) this.#found.push(path);
    }
    if (subdirectories.length > 0 && depth >= limits.maxDepth) {
      overflows.push(
        `${directory}: its subdirectories are skipped, they are more than ${limits.maxDepth} levels deep`,
      );
      return;
    }
    for (const subdirectory of subdirectories.sort()) {
      // A directory that was removed or cannot be read does not affect others.
      const walking = depth === 0 ? this.#intoShare(subdirectory) : this.into(subdirectory, depth + 1);
      await walking.catch((error) => {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") unread.set(subdirectory, messageOf(error));
      });
    }
  }

  /** Walks a subdirectory of a watched directory within its share. */
  async #intoShare(directory: string): Promise<void> {
    const { maxDirectories, maxSockets } = this.#options.limits;
    const limit = Math.ceil(maxDirectories / 2);
    const granted = Math.min(limit, this.#budget.directories);
    const own: Budget = { directories: granted, limit };
    const share = new Walk(this.#options, this.#result, own);
    try {
      await share.into(directory, 1);
    } finally {
      this.#budget.directories -= granted - Math.max(own.directories, 0);
      this.#found.push(...share.candidates(Math.ceil(maxSockets / 2), directory));
    }
  }
}

// Filesystems without d_type return entries of unknown type, which are also stat'ed.
function mayBeSocket(entry: Dirent): boolean {
  if (entry.isSocket() || entry.isSymbolicLink()) return true;
  return !(entry.isFile() || entry.isFIFO() || entry.isCharacterDevice() || entry.isBlockDevice());
}

async function socketAt(path: string): Promise<FoundSocket | undefined> {
  try {
    const found = await stat(path, { bigint: true });
    if (!found.isSocket()) return undefined;
    return { path, identity: identityOf(found), bornNs: bornOf(found) };
  } catch {
    return undefined;
  }
}

// Inode numbers are reused, so the birth time is included. ctime is not used because chmod after listen
// changes it.
function identityOf(found: BigIntStats): string {
  return `${found.dev}:${found.ino}:${bornOf(found)}`;
}

function bornOf(found: BigIntStats): bigint {
  return found.birthtimeNs > 0n ? found.birthtimeNs : found.ctimeNs;
}

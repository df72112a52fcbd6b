import type { Dirent, Stats } from "node:fs";
import { mkdir, opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@nodekeeper/core/lib";

/** A socket file found by a scan. */
export interface FoundSocket {
  path: string;
  /** Identity of the file; a different value at the same path means that the file was re-created. */
  identity: string;
  /** Creation time of the file, nanoseconds since the epoch. */
  bornNs: bigint;
}

export interface ScanLimits {
  /** Maximum depth below a watched directory; 8 by default. */
  maxDepth: number;
  /** Maximum number of directories walked and watched. */
  maxDirectories: number;
  /** Maximum number of entries read from one directory. */
  maxEntries: number;
  /** Maximum number of sockets considered. */
  maxSockets: number;
}

export interface ScanResult {
  sockets: Map<string, FoundSocket>;
  /** Errors of watched directories that could not be created or read, by path. */
  failures: Map<string, string>;
  /** Errors of subdirectories that could not be read, by path. */
  unread: Map<string, string>;
  /** What was skipped because of a limit. */
  overflows: string[];
}

export interface ScanOptions {
  directories: readonly string[];
  limits: ScanLimits;
  /** Called before a directory is read, so that no change is missed between the walk and the watch. */
  onDirectory(path: string, identity: string): void;
  /** Sockets that are preferred if there are more than the limit, so that new ones displace none. */
  isKnown(path: string): boolean;
}

/**
 * Walks the directories for sockets and creates missing watched directories (mode 0750). Names that start with "." are
 * ignored, symlinks to sockets are followed, symlinked directories are not. Only sockets and symlinks are stat'ed.
 */
export async function scanForSockets(options: ScanOptions): Promise<ScanResult> {
  const result: ScanResult = { sockets: new Map(), failures: new Map(), unread: new Map(), overflows: [] };
  const candidates: string[] = [];
  const budget = { directories: options.limits.maxDirectories };
  for (const directory of options.directories) {
    try {
      await mkdir(directory, { recursive: true, mode: 0o750 });
      await walk(directory, 0, options, budget, candidates, result);
    } catch (error) {
      result.failures.set(directory, messageOf(error));
    }
  }
  for (const path of capped(candidates, options, result.overflows)) {
    const found = await socketAt(path);
    if (found) result.sockets.set(path, found);
  }
  return result;
}

async function walk(
  directory: string,
  depth: number,
  options: ScanOptions,
  budget: { directories: number },
  candidates: string[],
  result: ScanResult,
): Promise<void> {
  const { limits } = options;
  const { overflows } = result;
  if (budget.directories-- <= 0) {
    overflows.push(`${directory}: skipped, limit of ${limits.maxDirectories} directories reached`);
    return;
  }
  options.onDirectory(directory, identityOf(await stat(directory, { bigint: true })));
  const folders: string[] = [];
  let entries = 0;
  for await (const entry of await opendir(directory, { bufferSize: 1024 })) {
    if (++entries > limits.maxEntries) {
      overflows.push(`${directory}: only its first ${limits.maxEntries} entries are read`);
      break;
    }
    if (entry.name.startsWith(".")) continue;
    const path = join(directory, entry.name);
    if (entry.isDirectory()) folders.push(path);
    else if (mayBeSocket(entry)) candidates.push(path);
  }
  if (folders.length > 0 && depth >= limits.maxDepth) {
    overflows.push(
      `${directory}: its subdirectories are skipped, they are more than ${limits.maxDepth} levels deep`,
    );
    return;
  }
  for (const folder of folders.sort()) {
    // A directory that was removed or cannot be read does not affect others.
    await walk(folder, depth + 1, options, budget, candidates, result).catch((error) => {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") result.unread.set(folder, messageOf(error));
    });
  }
}

// Filesystems without d_type return entries of unknown type, which are stat'ed.
function mayBeSocket(entry: Dirent): boolean {
  if (entry.isSocket() || entry.isSymbolicLink()) return true;
  return !(entry.isFile() || entry.isFIFO() || entry.isCharacterDevice() || entry.isBlockDevice());
}

function capped(candidates: string[], options: ScanOptions, overflows: string[]): string[] {
  const limit = options.limits.maxSockets;
  if (candidates.length <= limit) return candidates;
  overflows.push(`${candidates.length} sockets and symlinks found, only ${limit} are considered`);
  const known = candidates.filter((path) => options.isKnown(path));
  const others = candidates.filter((path) => !options.isKnown(path)).sort();
  return [...known, ...others].slice(0, limit);
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

interface BigStats extends Pick<Stats, "isSocket"> {
  dev: bigint;
  ino: bigint;
  birthtimeNs: bigint;
  ctimeNs: bigint;
}

// Inode numbers are reused, so the birth time is included; not ctime, which changes with a chmod after listen.
function identityOf(found: BigStats): string {
  return `${found.dev}:${found.ino}:${bornOf(found)}`;
}

function bornOf(found: BigStats): bigint {
  return found.birthtimeNs > 0n ? found.birthtimeNs : found.ctimeNs;
}

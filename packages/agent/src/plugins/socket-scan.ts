import type { Dirent, Stats } from "node:fs";
import { mkdir, opendir, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@nodekeeper/core/lib";

/** A socket file as a scan found it. */
export interface FoundSocket {
  path: string;
  /** Another value means that the file was re-created, whatever its path. */
  identity: string;
  /** When the file was made, nanoseconds since the epoch. */
  bornNs: bigint;
}

export interface ScanLimits {
  /** Folders below a watched directory that are entered; 8 by default. */
  maxDepth: number;
  /** Directories walked and watched in all. */
  maxDirectories: number;
  /** Entries read of one directory. */
  maxEntries: number;
  /** Sockets considered in all. */
  maxSockets: number;
}

export interface ScanResult {
  sockets: Map<string, FoundSocket>;
  /** Why a watched directory could not be made or read, by its path. */
  failures: Map<string, string>;
  /** Why a folder below one could not be read, by its path. */
  unread: Map<string, string>;
  /** What was left out because of a limit. */
  overflows: string[];
}

export interface ScanOptions {
  directories: readonly string[];
  limits: ScanLimits;
  /** Called before a directory is read, so that nothing is missed between the walk and the watch. */
  onDirectory(path: string, identity: string): void;
  /** Sockets kept first when there are more than the limit, so that newcomers push nobody out. */
  isKnown(path: string): boolean;
}

/**
 * Walks the directories for sockets, making the top ones where missing (mode 0750). Names that begin with "." are
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
    overflows.push(`${directory}: not walked, more than ${limits.maxDirectories} directories`);
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
    overflows.push(`${directory}: folders in it are not walked, they are deeper than ${limits.maxDepth}`);
    return;
  }
  for (const folder of folders.sort()) {
    // A folder that vanishes or can't be read takes nothing else with it.
    await walk(folder, depth + 1, options, budget, candidates, result).catch((error) => {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") result.unread.set(folder, messageOf(error));
    });
  }
}

// File systems without types in their directories say "none of these"; such an entry is looked at.
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

// Inodes are reused at once, so the time of birth counts too. Not ctime: a chmod after listen is no new socket.
function identityOf(found: BigStats): string {
  return `${found.dev}:${found.ino}:${bornOf(found)}`;
}

function bornOf(found: BigStats): bigint {
  return found.birthtimeNs > 0n ? found.birthtimeNs : found.ctimeNs;
}

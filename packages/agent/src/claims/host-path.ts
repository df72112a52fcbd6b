import type { Stats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@nodekeeper/core/lib";

/** A path on the host, followed component by component. */
export interface FollowedPath {
  /** The path with all links resolved, as by realpath(3). A component that does not exist is kept. */
  resolved: string;
  /** The first component that users other than root can change; undefined if there is none. */
  weakness: Weakness | undefined;
  /** What `resolved` is. Undefined if it does not exist or can't be read. */
  stats: Stats | undefined;
}

export interface Weakness {
  /** Absolute path on the host. */
  component: string;
  /** "belongs to user ID 1000" */
  what: string;
}

/** Components read so far, by path. They stay valid as long as no weakness was found: only root can change them. */
export type SeenComponents = Map<string, Promise<Found>>;

/** Undefined if the component does not exist: only users who can write its parent directory can create it. */
type Found = { stats: Stats; target: string | undefined } | Error | undefined;

const MOST_LINKS = 40;
const WRITABLE_BY_OTHERS = 0o002;
const WRITABLE_BY_GROUP = 0o020;

/**
 * Follows a path as the host's kernel does: an absolute link resolves below `root`, where the host's files are. Checks
 * each component as sshd's StrictModes does: directories, links and files belong to root, and only root may write
 * directories and files. A sticky directory such as /tmp is no exception, because any user can create names in it. The
 * mode of a device, socket or FIFO is ignored, because writing to it does not replace it. A component is checked after
 * the directory that contains it, so only root can replace it meanwhile. Returns undefined for a path with more than 40
 * links.
 * @param seen components that paths of the same preparation share are read once
 */
export async function followPath(
  root: string,
  path: string,
  seen: SeenComponents = new Map(),
): Promise<FollowedPath | undefined> {
  const found = (component: string) => {
    const known = seen.get(component) ?? look(join(root, component));
    seen.set(component, known);
    return known;
  };
  let weakness = weaknessOf("/", await found("/"));
  let rest = parts(path);
  let done: string[] = [];
  for (let links = 0; rest.length > 0; ) {
    const [part = "", ...after] = rest;
    rest = after;
    if (part === "..") {
      done.pop();
      continue;
    }
    const component = `/${[...done, part].join("/")}`;
    const here = await found(component);
    weakness ??= weaknessOf(component, here);
    const target = here instanceof Error ? undefined : here?.target;
    if (target === undefined) {
      done.push(part);
      continue;
    }
    if (++links > MOST_LINKS) return undefined;
    if (target.startsWith("/")) done = [];
    rest = [...parts(target), ...rest];
  }
  const resolved = `/${done.join("/")}`;
  // Read above.
  const last = await found(resolved);
  return { resolved, weakness, stats: last instanceof Error ? undefined : last?.stats };
}

function weaknessOf(component: string, found: Found): Weakness | undefined {
  if (!found) return undefined;
  if (found instanceof Error) return { component, what: `can't be read: ${messageOf(found)}` };
  const { stats } = found;
  const { uid, mode } = stats;
  if (uid !== 0) return { component, what: `belongs to user ID ${uid}` };
  if (!stats.isDirectory() && !stats.isFile()) return undefined;
  const who = mode & WRITABLE_BY_OTHERS ? "all users" : mode & WRITABLE_BY_GROUP ? "its group" : undefined;
  if (who === undefined) return undefined;
  return { component, what: `is writable by ${who} (mode ${(mode & 0o7777).toString(8)})` };
}

async function look(path: string): Promise<Found> {
  try {
    const stats = await lstat(path);
    return { stats, target: stats.isSymbolicLink() ? await readlink(path) : undefined };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : (error as Error);
  }
}

function parts(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

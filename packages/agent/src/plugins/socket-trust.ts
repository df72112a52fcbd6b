import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, relative, sep } from "node:path";
import { NodekeeperError, quote } from "@nodekeeper/core/lib";

export interface SocketTrustOptions {
  /** The watched directories, absolute. */
  directories: readonly string[];
  /** Where endpoints may lie besides the watched directories: drivers of the kubelet keep them in a folder of their own. */
  endpointDirectories: readonly string[];
  /** Users whose plugins are taken, besides root and the agent's own user. */
  allowedUids: readonly number[];
  /** Sockets that are no plugin's, whatever a plugin says: the container runtime's, the agent's own API. */
  foreignSockets: readonly string[];
}

interface FileStat {
  uid: number;
  gid: number;
  mode: number;
}

const WRITABLE_BY_OTHERS = 0o002;
const WRITABLE_BY_GROUP = 0o020;
// Only the owner of a file may rename or remove it, as in /tmp.
const STICKY = 0o1000;

/**
 * Decides by the owners and modes of files whether a socket is a plugin's. Users who may place a socket in a watched
 * directory decide what the node publishes and which pods are evicted: only root, the agent's own user and
 * `allowedUids` may. All checks throw `forbidden` with what to change, or `unavailable` where a file is missing.
 */
export class SocketTrust {
  readonly #options: SocketTrustOptions;
  readonly #uids: ReadonlySet<number>;
  readonly #gids: ReadonlySet<number>;

  constructor(options: SocketTrustOptions) {
    this.#options = options;
    this.#uids = new Set([0, process.getuid?.() ?? 0, ...options.allowedUids]);
    this.#gids = new Set([0, process.getgid?.() ?? 0]);
  }

  /** Checks a socket in a watched directory, and the folders between the two. */
  async checkRegistration(path: string): Promise<void> {
    await this.#checkFolders(path, this.#options.directories);
    await this.#checkOwner("socket", path);
  }

  /** Checks the socket that a plugin named as its endpoint: it must lie, links resolved, where plugins' sockets do. */
  async checkEndpoint(endpoint: string): Promise<void> {
    const { directories, endpointDirectories, foreignSockets } = this.#options;
    const real = await realpath(endpoint).catch((cause) => {
      throw new NodekeeperError("unavailable", `endpoint ${quote(endpoint)} can't be found`, { cause });
    });
    const foreign = await Promise.all(foreignSockets.map((path) => realpath(path).catch(() => path)));
    if (foreign.includes(real))
      throw new NodekeeperError("forbidden", `endpoint ${quote(endpoint)} is no plugin's socket`);
    const allowed = [...directories, ...endpointDirectories];
    const roots = await Promise.all(allowed.map((path) => realpath(path).catch(() => path)));
    if (!roots.some((root) => isBelow(real, root))) {
      throw new NodekeeperError(
        "forbidden",
        `endpoint ${quote(endpoint)} is outside of ${allowed.join(", ")}; serve it there, or add its folder to plugins.endpointDirectories`,
      );
    }
    await this.#checkFolders(real, roots);
    await this.#checkOwner("endpoint", endpoint);
  }

  async #checkFolders(path: string, roots: readonly string[]): Promise<void> {
    const root = roots.find((directory) => isBelow(path, directory));
    for (
      let folder = dirname(path);
      root && (folder === root || isBelow(folder, root));
      folder = dirname(folder)
    )
      this.#checkFolder(folder, await stat(folder));
  }

  #checkFolder(folder: string, { uid, gid, mode }: FileStat): void {
    if (!this.#uids.has(uid)) throw this.#wrongOwner("directory", folder, uid);
    if (mode & STICKY) return;
    const byGroup = mode & WRITABLE_BY_GROUP && !this.#gids.has(gid);
    if (!byGroup && !(mode & WRITABLE_BY_OTHERS)) return;
    const who = byGroup ? `group ${gid}` : "every user of the node";
    throw new NodekeeperError(
      "forbidden",
      `directory ${folder} (mode ${(mode & 0o7777).toString(8)}) can be changed by ${who}; chmod go-w it`,
    );
  }

  // A link and what it leads to: each may have been made by another user.
  async #checkOwner(what: string, path: string): Promise<void> {
    for (const { uid } of [await lstat(path), await stat(path)]) {
      if (!this.#uids.has(uid)) throw this.#wrongOwner(what, path, uid);
    }
  }

  #wrongOwner(what: string, path: string, uid: number): NodekeeperError {
    return new NodekeeperError(
      "forbidden",
      `${what} ${path} belongs to user ${uid}; plugins of ${[...this.#uids].sort((a, b) => a - b).join(", ")} are accepted (plugins.allowedUids)`,
    );
  }
}

function isBelow(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`);
}

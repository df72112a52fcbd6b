import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, relative, sep } from "node:path";
import { NodekeeperError, quote } from "@nodekeeper/core/lib";

export interface SocketTrustOptions {
  /** The watched directories, absolute. */
  directories: readonly string[];
  /** Directories in which endpoints are allowed in addition to the watched ones, such as /var/lib/kubelet/plugins. */
  endpointDirectories: readonly string[];
  /** User IDs whose plugins are accepted, in addition to root and the agent's user. */
  allowedUids: readonly number[];
  /** Sockets that are never plugin endpoints: the container runtime's and the agent's API. */
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
 * Decides by the owners and modes of files whether a socket is accepted as a plugin's. Plugins decide what is published
 * for the node and which pods are evicted, so only root, the agent's user and `allowedUids` may place sockets. All checks
 * throw `forbidden` with the required change, or `unavailable` if a file does not exist.
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

  /** Checks a socket in a watched directory, and the directories between them. */
  async checkRegistration(path: string): Promise<void> {
    await this.#checkFolders(path, this.#options.directories);
    await this.#checkOwner("socket", path);
  }

  /** Checks a plugin's endpoint: with links resolved, it must be in an allowed directory. */
  async checkEndpoint(endpoint: string): Promise<void> {
    const { directories, endpointDirectories, foreignSockets } = this.#options;
    const real = await realpath(endpoint).catch((cause) => {
      throw new NodekeeperError("unavailable", `endpoint ${quote(endpoint)} not found`, {
        id: "NK1309",
        cause,
      });
    });
    const foreign = await Promise.all(foreignSockets.map((path) => realpath(path).catch(() => path)));
    if (foreign.includes(real))
      throw new NodekeeperError(
        "forbidden",
        `endpoint ${quote(endpoint)} is a socket of the agent or the container runtime, not of a plugin`,
        { id: "NK1311" },
      );
    const allowed = [...directories, ...endpointDirectories];
    const roots = await Promise.all(allowed.map((path) => realpath(path).catch(() => path)));
    if (!roots.some((root) => isBelow(real, root))) {
      throw new NodekeeperError(
        "forbidden",
        `endpoint ${quote(endpoint)} is outside of ${allowed.join(", ")}; serve it there, or add its directory to plugins.endpointDirectories`,
        { id: "NK1310" },
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
    const who = byGroup ? `group ${gid}` : "all users";
    throw new NodekeeperError(
      "forbidden",
      `directory ${folder} (mode ${(mode & 0o7777).toString(8)}) is writable by ${who}; run chmod go-w on it`,
      { id: "NK1313" },
    );
  }

  // Both the link and its target are checked, since another user may have created either.
  async #checkOwner(what: string, path: string): Promise<void> {
    for (const { uid } of [await lstat(path), await stat(path)]) {
      if (!this.#uids.has(uid)) throw this.#wrongOwner(what, path, uid);
    }
  }

  #wrongOwner(what: string, path: string, uid: number): NodekeeperError {
    return new NodekeeperError(
      "forbidden",
      `${what} ${path} is owned by user ID ${uid}; accepted user IDs: ${[...this.#uids].sort((a, b) => a - b).join(", ")} (plugins.allowedUids)`,
      { id: "NK1312" },
    );
  }
}

function isBelow(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`);
}

import { lstat, realpath, stat } from "node:fs/promises";
import { dirname, relative, sep } from "node:path";
import {
  PluginEndpointForeign,
  PluginEndpointMissing,
  PluginEndpointOutside,
  SocketDirectoryNotTrusted,
  SocketOwnerNotTrusted,
} from "@nodekeeper/api/errors";
import { type NodekeeperError, quote } from "@nodekeeper/core/lib";

export interface SocketTrustOptions {
  /** The watched directories, as absolute paths. */
  directories: readonly string[];
  /**
   * Directories in which endpoints are allowed in addition to the watched directories, such as
   * /var/lib/kubelet/plugins.
   */
  endpointDirectories: readonly string[];
  /** User IDs whose plugins are accepted, in addition to root and the agent's user. */
  allowedUids: readonly number[];
  /** Sockets that are never plugin endpoints: the container runtime's socket and the agent's API. */
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
 * Decides by the owners and modes of files whether a socket is accepted as a plugin's. Plugins influence what
 * is published for the node and which pods are evicted, so only root, the agent's user and `allowedUids` may
 * create sockets. All checks throw `forbidden` with the required change, and `unavailable` if an endpoint
 * does not exist.
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

  /**
   * Checks a socket in a watched directory, and the directories in between. Returns the ID of the user it
   * belongs to.
   */
  async checkRegistration(path: string): Promise<number> {
    await this.#checkDirectories(path, this.#options.directories);
    return await this.#checkOwner("socket", path);
  }

  /**
   * Checks a plugin's endpoint, which must be in an allowed directory after resolving links. Returns the ID
   * of the user it belongs to.
   */
  async checkEndpoint(endpoint: string): Promise<number> {
    const { directories, endpointDirectories, foreignSockets } = this.#options;
    const real = await realpath(endpoint).catch((cause) => {
      throw new PluginEndpointMissing({ endpoint: quote(endpoint) }, { cause });
    });
    const foreign = await Promise.all(foreignSockets.map((path) => realpath(path).catch(() => path)));
    if (foreign.includes(real)) throw new PluginEndpointForeign({ endpoint: quote(endpoint) });
    const allowed = [...directories, ...endpointDirectories];
    const roots = await Promise.all(allowed.map((path) => realpath(path).catch(() => path)));
    if (!roots.some((root) => isBelow(real, root))) {
      throw new PluginEndpointOutside({ endpoint: quote(endpoint), allowed: allowed.join(", ") });
    }
    await this.#checkDirectories(real, roots);
    return await this.#checkOwner("endpoint", endpoint);
  }

  async #checkDirectories(path: string, roots: readonly string[]): Promise<void> {
    const root = roots.find((directory) => isBelow(path, directory));
    for (
      let directory = dirname(path);
      root && (directory === root || isBelow(directory, root));
      directory = dirname(directory)
    )
      this.#checkDirectory(directory, await stat(directory));
  }

  #checkDirectory(directory: string, { uid, gid, mode }: FileStat): void {
    if (!this.#uids.has(uid)) throw this.#wrongOwner("directory", directory, uid);
    if (mode & STICKY) return;
    const byGroup = mode & WRITABLE_BY_GROUP && !this.#gids.has(gid);
    if (!byGroup && !(mode & WRITABLE_BY_OTHERS)) return;
    const who = byGroup ? `group ${gid}` : "all users";
    throw new SocketDirectoryNotTrusted({ directory, mode: (mode & 0o7777).toString(8), who });
  }

  // Checks both the link and its target, because another user may have created either. A link to another
  // user's socket belongs to the user of the link, who decides how long it exists.
  async #checkOwner(what: string, path: string): Promise<number> {
    const uids = [(await lstat(path)).uid, (await stat(path)).uid];
    const wrong = uids.find((uid) => !this.#uids.has(uid));
    if (wrong !== undefined) throw this.#wrongOwner(what, path, wrong);
    return firstUser(uids);
  }

  #wrongOwner(what: string, path: string, uid: number): NodekeeperError {
    return new SocketOwnerNotTrusted({
      what,
      path,
      uid,
      accepted: [...this.#uids].sort((a, b) => a - b).join(", "),
    });
  }
}

/** Returns the first user ID other than root's, or root's if there is none. */
export function firstUser(uids: readonly number[]): number {
  return uids.find((uid) => uid !== 0) ?? 0;
}

function isBelow(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`);
}

import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Clock, messageOf, NodekeeperError, probeSocket } from "@nodekeeper/core/lib";

const POLL_MS = 50;

/** Where a driver serves: its socket, or the directory of it. */
export class SocketPlace {
  readonly path: string;
  readonly #clock: Clock;

  constructor(path: string, clock: Clock) {
    this.path = resolve(path);
    this.#clock = clock;
  }

  /**
   * Returns the path of the socket on which a process listens; undefined if there is none. As the agent, ignores hidden
   * files. Throws `invalid` if there are several, or if the directory can't be read.
   */
  async find(): Promise<string | undefined> {
    const found: string[] = [];
    for (const path of await this.#candidates())
      if ((await probeSocket(this.#clock, path)) === "accepts") found.push(path);
    if (found.length > 1)
      throw new NodekeeperError(
        "invalid",
        `several processes listen on sockets in ${this.path}; name one: ${found.join(", ")}`,
      );
    return found[0];
  }

  /** Waits at most `ms` until a process listens. Returns its socket. Throws `deadline`. */
  async appears(ms: number, signal: AbortSignal, isPossible: () => boolean = () => true): Promise<string> {
    const until = this.#clock.monotonic() + ms;
    for (;;) {
      const socket = await this.find();
      if (socket !== undefined) return socket;
      if (!isPossible() || this.#clock.monotonic() >= until)
        throw new NodekeeperError("deadline", `no process listens on a socket at ${this.path}`);
      await this.#clock.sleep(POLL_MS, signal);
    }
  }

  async #candidates(): Promise<string[]> {
    try {
      if ((await stat(this.path)).isSocket()) return [this.path];
      const entries: Dirent[] = await readdir(this.path, { withFileTypes: true, recursive: true });
      return entries
        .filter((entry) => entry.isSocket() && !entry.name.startsWith("."))
        .map(({ parentPath, name }) => join(parentPath, name));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new NodekeeperError("invalid", `failed to read ${this.path}: ${messageOf(error)}`);
    }
  }
}

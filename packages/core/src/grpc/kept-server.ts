import { randomBytes } from "node:crypto";
import { watch } from "node:fs";
import { dirname } from "node:path";
import { createServer, type Server } from "nice-grpc";
import { type Clock, type Logger, NodekeeperError } from "../lib/index.ts";
import { type OwnSocket, ownershipOf, placeSocket, removeSocket } from "./socket-file.ts";

export interface KeptServerOptions {
  /** Absolute, at most 107 bytes; its folder is made where missing. */
  path: string;
  /** Adds the services. Called again for each new socket. */
  addServices: (server: Server) => void;
  /** The largest request taken, bytes. Default: gRPC's, 4 MiB. */
  maxRequestBytes?: number | undefined;
  /** How often the socket file is looked at without an event, milliseconds. Default 2 s. */
  checkIntervalMs?: number | undefined;
  /** The socket disappeared and is about to be served again. */
  onLost?: () => void;
  clock: Clock;
  log: Logger;
}

const CHECK_INTERVAL_MS = 2_000;
const SHUTDOWN_MS = 1_000;

/**
 * A gRPC server on a unix socket that is served again when its file disappears: programs that watch the folder take that
 * for a new registration, which is also how they ask for one.
 */
export class KeptServer {
  /** Resolves when the socket is served; rejects when it can't be: `invalid`, `conflict` (a second instance). */
  readonly ready: Promise<void>;
  readonly #options: KeptServerOptions;
  readonly #ready = Promise.withResolvers<void>();
  #server: Server | undefined;
  #socket: OwnSocket | undefined;

  constructor(options: KeptServerOptions) {
    this.#options = options;
    this.ready = this.#ready.promise;
    // Its rejection is also what `run` throws.
    this.ready.catch(() => {});
  }

  /**
   * Serves until the signal aborts, then removes the socket; that takes about 1 s at most. Throws where the socket can't
   * be served at first, and `conflict` when another process took it.
   */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#serve();
      this.#ready.resolve();
      while (!signal.aborted) await this.#keep(signal);
    } catch (error) {
      this.#ready.reject(error);
      throw error;
    } finally {
      await this.#close();
    }
  }

  async #serve(): Promise<void> {
    const { path, maxRequestBytes, addServices, clock, log } = this.#options;
    const previous = this.#server;
    const server = createServer(
      maxRequestBytes === undefined ? {} : { "grpc.max_receive_message_length": maxRequestBytes },
    );
    addServices(server);
    // Random, since one process may serve several sockets in the directory.
    const hiddenName = `.${process.pid}-${randomBytes(4).toString("hex")}.sock`;
    try {
      this.#socket = await placeSocket(path, hiddenName, clock, async (hidden) => {
        await server.listen(`unix:${hidden}`);
      });
    } catch (error) {
      server.forceShutdown();
      throw error;
    }
    this.#server = server;
    previous?.forceShutdown();
    log.info({ socket: path }, "serving");
  }

  /** Waits for an event in the folder, or the interval, then puts the socket back if it is gone. */
  async #keep(signal: AbortSignal): Promise<void> {
    const { path, clock, log, onLost } = this.#options;
    await this.#folderChanged(signal);
    if (signal.aborted || !this.#socket) return;
    const ownership = await ownershipOf(this.#socket, clock);
    if (ownership === "ours") return;
    if (ownership === "taken") {
      throw new NodekeeperError("conflict", `another process took the socket ${path}`);
    }
    log.warn({ socket: path }, "socket disappeared, serving again");
    onLost?.();
    try {
      await this.#serve();
    } catch (error) {
      if (error instanceof NodekeeperError) throw error;
      // The directory may be on its way back; the next round tries again.
      log.warn({ err: error }, "socket can't be served yet");
    }
  }

  #folderChanged(signal: AbortSignal): Promise<void> {
    const { path, clock, checkIntervalMs = CHECK_INTERVAL_MS } = this.#options;
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel();
        watcher?.close();
        signal.removeEventListener("abort", finish);
        resolve();
      };
      const watcher = watchFolder(dirname(path), finish);
      const timer = clock.after(checkIntervalMs, finish);
      signal.addEventListener("abort", finish, { once: true });
      if (signal.aborted) finish();
    });
  }

  async #close(): Promise<void> {
    const { clock } = this.#options;
    if (this.#socket) await removeSocket(this.#socket, clock);
    const server = this.#server;
    if (!server) return;
    const timer = clock.after(SHUTDOWN_MS, () => server.forceShutdown());
    await server.shutdown();
    timer.cancel();
  }
}

function watchFolder(path: string, onRename: () => void) {
  try {
    const watcher = watch(path, { persistent: false }, (event) => event === "rename" && onRename());
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    // No folder, or no inotify handles left: the interval serves.
    return undefined;
  }
}

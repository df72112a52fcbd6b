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
  /** Maximum number of concurrent streams of one connection; further calls wait in the client. Default: no limit. */
  maxStreams?: number | undefined;
  /** Mode of the socket file. Default 0600. */
  mode?: number | undefined;
  /** How often the socket file is checked without an event, milliseconds. Default 2 s. */
  checkIntervalMs?: number | undefined;
  /** The socket is served: at first, and each time that it is served again. */
  onServing?: () => void;
  /** The socket disappeared and is about to be served again. */
  onLost?: () => void;
  clock: Clock;
  log: Logger;
}

const CHECK_INTERVAL_MS = 2_000;
const SHUTDOWN_MS = 1_000;
const RETRY_MS = 5_000;

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
    const { path, mode, maxRequestBytes, maxStreams, addServices, onServing, clock, log } = this.#options;
    const previous = this.#server;
    const server = createServer({
      "grpc.enable_channelz": 0,
      ...(maxRequestBytes === undefined ? {} : { "grpc.max_receive_message_length": maxRequestBytes }),
      ...(maxStreams === undefined ? {} : { "grpc.max_concurrent_streams": maxStreams }),
    });
    addServices(server);
    // Random, since one process may serve several sockets in the directory.
    const hiddenName = `.${process.pid}-${randomBytes(4).toString("hex")}.sock`;
    try {
      const listen = async (hidden: string) => void (await server.listen(`unix:${hidden}`));
      this.#socket = await placeSocket(path, hiddenName, clock, listen, mode);
    } catch (error) {
      server.forceShutdown();
      throw error;
    }
    this.#server = server;
    previous?.forceShutdown();
    log.info({ socket: path }, "serving");
    onServing?.();
  }

  /** Waits for an event in the folder, or the interval, then serves the socket again if its file was removed. */
  async #keep(signal: AbortSignal): Promise<void> {
    const { path, clock, log, onLost } = this.#options;
    await this.#folderChanged(signal);
    if (signal.aborted || !this.#socket) return;
    const ownership = await ownershipOf(this.#socket, clock);
    // Asked to stop meanwhile: the folder may be removed because of that.
    if (ownership === "ours" || signal.aborted) return;
    if (ownership === "taken") {
      throw new NodekeeperError("conflict", `another process took the socket ${path}`, { id: "NK1706" });
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

/**
 * Runs a `KeptServer` until the signal aborts. Where it can't be served, or another process took its socket, it is tried
 * again every 5 s. @param onFailure is called for each of these failures
 */
export async function keepServing(
  options: KeptServerOptions,
  onFailure: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await new KeptServer(options).run(signal);
    } catch (error) {
      if (signal.aborted) return;
      onFailure(error);
      await options.clock.sleep(RETRY_MS, signal).catch(() => {});
    }
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

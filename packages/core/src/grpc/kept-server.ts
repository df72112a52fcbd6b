import { randomBytes } from "node:crypto";
import { basename, dirname } from "node:path";
import { SocketInUse } from "@nodekeeper/api/errors";
import { createServer, type Server } from "nice-grpc";
import {
  type Clock,
  childScope,
  InotifyWatches,
  type Logger,
  NodekeeperError,
  silentLogger,
  sleepOrAbort,
} from "../lib/index.ts";
import { listenBounded } from "./bounded-listener.ts";
import { type OwnSocket, ownershipOf, placeSocket, removeSocket } from "./socket-file.ts";

/** Limits that the server sets its clients. */
export interface ServerLimits {
  /** Maximum size of a request, in bytes. Default: gRPC's, 4 MiB. */
  maxRequestBytes?: number | undefined;
  /** Maximum number of concurrent streams per connection. Further calls wait in the client. Default: unlimited. */
  maxStreams?: number;
}

export interface KeptServerOptions {
  /** Absolute path, at most 107 bytes. Its directory is created if missing. */
  path: string;
  /** Adds the services. Called for each new socket. */
  addServices: (server: Server) => void;
  limits?: ServerLimits;
  /** Mode of the socket file. Default 0600. */
  mode?: number | undefined;
  /** Called with true each time the socket is served, and with false when it disappeared. */
  onServing?: (isServing: boolean) => void;
  clock: Clock;
  log: Logger;
  /** Starts the inotify watch of the socket's directory. Default: an instance that does not log. */
  watches?: InotifyWatches | undefined;
}

/** Interval of checks of the socket file without an event, if its directory can't be watched. */
const CHECK_INTERVAL_MS = 2_000;
/**
 * Interval of checks if the directory is watched. Detects changes that cause no event, such as a mount over the
 * directory or a renamed parent directory.
 */
const WATCHED_CHECK_INTERVAL_MS = 10_000;
const SHUTDOWN_MS = 1_000;
const RETRY_MS = 5_000;

/**
 * A gRPC server on a unix socket that is served again if its file disappears. Programs that watch the directory treat
 * the new file as a new registration, and delete the file to request one.
 */
export class KeptServer {
  /** Resolves when the socket is served. Rejects if it cannot be: `invalid`, or `conflict` (a second instance). */
  readonly ready: Promise<void>;
  readonly #options: KeptServerOptions;
  readonly #watches: InotifyWatches;
  readonly #ready = Promise.withResolvers<void>();
  #server: Server | undefined;
  #socket: OwnSocket | undefined;

  constructor(options: KeptServerOptions) {
    this.#options = options;
    this.#watches = options.watches ?? new InotifyWatches(silentLogger);
    this.ready = this.#ready.promise;
    // `run` throws the same error.
    this.ready.catch(() => {});
  }

  /**
   * Serves until the signal aborts, then removes the socket, within about 1 s. Throws if the socket cannot be served
   * initially, and `conflict` if another process takes it over.
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
    const { path, mode, limits = {}, addServices, onServing, clock, log } = this.#options;
    const { maxRequestBytes, maxStreams } = limits;
    const previous = this.#server;
    const server = createServer({
      "grpc.enable_channelz": 0,
      ...(maxRequestBytes === undefined ? {} : { "grpc.max_receive_message_length": maxRequestBytes }),
      ...(maxStreams === undefined ? {} : { "grpc.max_concurrent_streams": maxStreams }),
    });
    addServices(server);
    // Random, because one process may serve several sockets in the directory.
    const hiddenName = `.${process.pid}-${randomBytes(4).toString("hex")}.sock`;
    try {
      const listen = (hidden: string) =>
        listenBounded(hidden, async () => void (await server.listen(`unix:${hidden}`)), log);
      this.#socket = await placeSocket({ path, hiddenName, mode }, clock, listen);
    } catch (error) {
      server.forceShutdown();
      throw error;
    }
    this.#server = server;
    previous?.forceShutdown();
    log.info({ socket: path }, "serving");
    onServing?.(true);
  }

  /** Serves the socket again if its file was removed, then waits for an event of the socket file or the interval. */
  async #keep(signal: AbortSignal): Promise<void> {
    const scope = childScope(signal);
    try {
      // Watched before the check, so that no removal is missed in between.
      const changed = this.#directoryChanged(scope.signal);
      if (await this.#isKept(signal)) await changed;
      else await sleepOrAbort(this.#options.clock, CHECK_INTERVAL_MS, signal);
    } finally {
      scope.abort();
      scope.release();
    }
  }

  // Returns false if the socket cannot be served at present.
  async #isKept(signal: AbortSignal): Promise<boolean> {
    const { path, clock, log, onServing } = this.#options;
    if (signal.aborted || !this.#socket) return true;
    const ownership = await ownershipOf(this.#socket, clock);
    // If the agent is stopping, the directory may have been removed for that reason.
    if (ownership === "ours" || signal.aborted) return true;
    if (ownership === "taken") {
      throw new SocketInUse({ problem: `took the socket ${path}` });
    }
    log.warn({ socket: path }, "socket disappeared, serving again");
    onServing?.(false);
    try {
      await this.#serve();
      return true;
    } catch (error) {
      if (error instanceof NodekeeperError) throw error;
      // The directory may be recreated. The next check retries.
      log.warn({ err: error }, "failed to serve the socket, retrying");
      return false;
    }
  }

  #directoryChanged(signal: AbortSignal): Promise<void> {
    const { path, clock } = this.#options;
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel();
        watcher?.close();
        signal.removeEventListener("abort", finish);
        resolve();
      };
      // Other files of the directory are written often. An event of the directory itself has the directory's name.
      const names = [null, basename(path), basename(dirname(path))];
      const watcher = this.#watches.start(
        dirname(path),
        (event, file) => {
          if (event === "rename" && names.includes(file)) finish();
        },
        () => {
          timer.cancel();
          timer = clock.after(CHECK_INTERVAL_MS, finish);
        },
      );
      let timer = clock.after(watcher ? WATCHED_CHECK_INTERVAL_MS : CHECK_INTERVAL_MS, finish);
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
 * Runs a `KeptServer` until the signal aborts. If it cannot be served or another process takes its socket, retries
 * every 5 s.
 * @param onFailure called for each of these failures
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
      await sleepOrAbort(options.clock, RETRY_MS, signal);
    }
  }
}

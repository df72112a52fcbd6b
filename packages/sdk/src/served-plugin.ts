import { randomBytes } from "node:crypto";
import { watch } from "node:fs";
import { dirname, join } from "node:path";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { type OwnSocket, ownershipOf, placeSocket, removeSocket } from "@nodekeeper/core/grpc";
import {
  type Clock,
  checkPluginName,
  childScope,
  type Logger,
  NodekeeperError,
  silentLogger,
  stopped,
  systemClock,
} from "@nodekeeper/core/lib";
import { createServer, type Server } from "nice-grpc";
import { type RegistrationState, registrationService } from "./services.ts";

/** What all plugins are served with. */
export interface PluginOptions {
  /** Unique among the node's plugins of the type; letters, digits, '.', '-', '_', at most 253. */
  name: string;
  /** The directory the agent watches. Made where missing. */
  socketDir: string;
  /** Default: `<socketDir>/<name>.sock`. At most 107 bytes. */
  socketPath?: string;
  /** Default: says nothing. */
  log?: Logger;
  /** Stops the plugin when it aborts, as `stop` does. */
  signal?: AbortSignal;
  onRegistered?: () => void;
  /** The agent refused the plugin; the reason says what it would accept. */
  onRefused?: (reason: string) => void;
  /** How often the socket file is looked at without an event, milliseconds. Default 2 s. */
  checkIntervalMs?: number;
  clock?: Clock;
}

/** A plugin that is served. */
export interface Plugin {
  readonly socketPath: string;
  /** Resolves when the socket is served; rejects when it can't be: `invalid`, `conflict` (a second instance). */
  readonly ready: Promise<void>;
  /** Resolves after `stop`; rejects when the plugin can't go on, as when another process took its socket. */
  readonly closed: Promise<void>;
  /** What the agent said last. */
  readonly registration: RegistrationState;
  /** Stops serving and removes the socket. Takes at most about 2 s. */
  stop(): Promise<void>;
}

/** What a kind of plugin gets to work with. */
export interface PluginParts {
  clock: Clock;
  log: Logger;
  /** Aborts when the plugin stops. */
  stop: AbortSignal;
}

/** What makes a plugin one of its type. */
export interface PluginKind {
  /** As the registration says it. */
  type: string;
  versions: readonly string[];
  /** The largest request it takes, bytes. Default: gRPC's, 4 MiB. */
  maxRequestBytes?: number;
  /** Adds the plugin's own service. Called again for each new socket. */
  addService(server: Server, parts: PluginParts): void;
  /** What it does beside answering, from the start until `stop` aborts. */
  work?(parts: PluginParts): Promise<void>;
}

/** Serves again when the socket disappears, which is also how the agent asks for a new registration. */
export class ServedPlugin implements Plugin {
  readonly socketPath: string;
  readonly ready: Promise<void>;
  readonly closed: Promise<void>;
  registration: RegistrationState = { state: "waiting" };
  readonly #options: PluginOptions;
  readonly #kind: PluginKind;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #scope;
  #server: Server | undefined;
  #socket: OwnSocket | undefined;

  constructor(options: PluginOptions, kind: PluginKind) {
    this.#options = options;
    this.#kind = kind;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ plugin: options.name });
    this.#scope = childScope(options.signal);
    this.socketPath = options.socketPath ?? join(options.socketDir, `${options.name}.sock`);
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.closed = this.#run(ready);
    // Who does not look at them reads the log; the process must not die of it.
    this.ready.catch(() => {});
    this.closed.catch(() => {});
  }

  async stop(): Promise<void> {
    this.#scope.abort(stopped("plugin stopped"));
    await this.closed.catch(() => {});
  }

  get #parts(): PluginParts {
    return { clock: this.#clock, log: this.#log, stop: this.#scope.signal };
  }

  async #run(ready: PromiseWithResolvers<void>): Promise<void> {
    const { signal } = this.#scope;
    const work = this.#kind.work?.(this.#parts);
    try {
      checkPluginName(this.#options.name);
      await this.#serve();
      ready.resolve();
      while (!signal.aborted) await this.#keep(signal);
    } catch (error) {
      ready.reject(error);
      this.#log.error({ err: error }, "plugin can't be served");
      throw error;
    } finally {
      this.#scope.abort(stopped("plugin stopped"));
      this.#scope.release();
      await this.#close();
      await work;
    }
  }

  async #serve(): Promise<void> {
    const { name } = this.#options;
    const previous = this.#server;
    const { maxRequestBytes } = this.#kind;
    const server = createServer(
      maxRequestBytes === undefined ? {} : { "grpc.max_receive_message_length": maxRequestBytes },
    );
    server.add(
      RegistrationDefinition,
      registrationService(name, this.#kind, (state) => this.#told(state)),
    );
    this.#kind.addService(server, this.#parts);
    // Random, since one process may serve several plugins in the directory.
    const hiddenName = `.${process.pid}-${randomBytes(4).toString("hex")}.sock`;
    try {
      this.#socket = await placeSocket(this.socketPath, hiddenName, this.#clock, async (path) => {
        await server.listen(`unix:${path}`);
      });
    } catch (error) {
      server.forceShutdown();
      throw error;
    }
    this.#server = server;
    previous?.forceShutdown();
    this.#log.info({ socket: this.socketPath }, "serving");
  }

  /** Waits for an event in the folder, or the interval, then puts the socket back if it is gone. */
  async #keep(signal: AbortSignal): Promise<void> {
    await this.#folderChanged(signal);
    if (signal.aborted || !this.#socket) return;
    const ownership = await ownershipOf(this.#socket, this.#clock);
    if (ownership === "ours") return;
    if (ownership === "taken") {
      throw new NodekeeperError("conflict", `another process took the socket ${this.socketPath}`);
    }
    this.#log.warn({ socket: this.socketPath }, "socket disappeared, serving again");
    this.registration = { state: "waiting" };
    try {
      await this.#serve();
    } catch (error) {
      if (error instanceof NodekeeperError) throw error;
      // The directory may be on its way back; the next round tries again.
      this.#log.warn({ err: error }, "socket can't be served yet");
    }
  }

  #folderChanged(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel();
        watcher?.close();
        signal.removeEventListener("abort", finish);
        resolve();
      };
      const watcher = watchFolder(dirname(this.socketPath), finish);
      const timer = this.#clock.after(this.#options.checkIntervalMs ?? 2_000, finish);
      signal.addEventListener("abort", finish, { once: true });
      if (signal.aborted) finish();
    });
  }

  #told(state: RegistrationState): void {
    this.registration = state;
    if (state.state === "registered") {
      this.#log.info("registered");
      this.#options.onRegistered?.();
    } else if (state.state === "refused") {
      this.#log.error({ reason: state.reason }, "refused by the agent");
      this.#options.onRefused?.(state.reason);
    }
  }

  async #close(): Promise<void> {
    if (this.#socket) await removeSocket(this.#socket, this.#clock);
    const server = this.#server;
    if (!server) return;
    const timer = this.#clock.after(1_000, () => server.forceShutdown());
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

import { join } from "node:path";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { KeptServer } from "@nodekeeper/core/grpc";
import {
  type Clock,
  checkPluginName,
  childScope,
  createLogger,
  type Logger,
  stopped,
  systemClock,
} from "@nodekeeper/core/lib";
import type { Server } from "nice-grpc";
import type { CallSite } from "./author-error.ts";
import { RegistrationWatch } from "./registration-watch.ts";
import { type RegistrationState, registrationService } from "./services.ts";

/** What all plugins are served with. */
export interface PluginOptions {
  /** Unique among the node's plugins of the type; letters, digits, '.', '-', '_', at most 253. */
  name: string;
  /** The directory the agent watches. Made where missing. */
  socketDir: string;
  /** Default: `<socketDir>/<name>.sock`. At most 107 bytes. */
  socketPath?: string;
  /** Default: warnings and errors, on standard error. */
  log?: Logger;
  /** Stops the plugin when it aborts, as `stop` does. */
  signal?: AbortSignal;
  onRegistered?: () => void;
  /** The agent refused the plugin; the reason names what it would accept. */
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
  /** Resolves after `stop`; rejects when the plugin can't continue, as when another process took its socket. */
  readonly closed: Promise<void>;
  /** The agent's last answer. */
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
  /** As in the registration. */
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
  readonly #site: CallSite;
  readonly #watch: RegistrationWatch;

  /** @param site where the author called, for the errors of `ready` and `closed` */
  constructor(options: PluginOptions, kind: PluginKind, site: CallSite) {
    this.#options = options;
    this.#kind = kind;
    this.#site = site;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? createLogger("warn")).child({ plugin: options.name });
    this.#scope = childScope(options.signal);
    this.socketPath = options.socketPath ?? join(options.socketDir, `${options.name}.sock`);
    this.#watch = new RegistrationWatch({
      socketPath: this.socketPath,
      state: () => this.registration,
      clock: this.#clock,
      log: this.#log,
    });
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
    const work = this.#kind.work?.(this.#parts);
    try {
      checkPluginName(this.#options.name);
      const server = this.#server();
      server.ready.then(ready.resolve, () => {});
      await server.run(this.#scope.signal);
    } catch (error) {
      const shown = this.#site.error(error);
      ready.reject(shown);
      this.#log.error({ err: shown }, "plugin can't be served");
      throw shown;
    } finally {
      this.#watch.stop();
      this.#scope.abort(stopped("plugin stopped"));
      this.#scope.release();
      await work;
    }
  }

  #server(): KeptServer {
    const { name, checkIntervalMs } = this.#options;
    return new KeptServer({
      path: this.socketPath,
      maxRequestBytes: this.#kind.maxRequestBytes,
      checkIntervalMs,
      addServices: (server) => {
        server.add(
          RegistrationDefinition,
          registrationService(name, this.#kind, {
            asked: () => this.#watch.asked(),
            answered: (state) => this.#registrationChanged(state),
          }),
        );
        this.#kind.addService(server, this.#parts);
      },
      onServing: () => this.#watch.start(),
      onLost: () => {
        this.registration = { state: "waiting" };
        this.#watch.lost();
      },
      clock: this.#clock,
      log: this.#log,
    });
  }

  #registrationChanged(state: RegistrationState): void {
    this.registration = state;
    if (state.state === "registered") {
      this.#log.info("registered");
      this.#options.onRegistered?.();
    } else if (state.state === "refused") {
      this.#log.error({ reason: state.reason }, "refused by the agent");
      this.#options.onRefused?.(state.reason);
    }
  }
}

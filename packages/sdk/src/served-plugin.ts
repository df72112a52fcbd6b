import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { KeptServer, removeStaleSockets } from "@nodekeeper/core/grpc";
import {
  type Clock,
  checkPluginName,
  childScope,
  createLogger,
  type Logger,
  NodekeeperError,
  stopped,
  systemClock,
} from "@nodekeeper/core/lib";
import type { Server } from "nice-grpc";
import type { CallSite } from "./author-error.ts";
import { RegistrationWatch } from "./registration-watch.ts";
import { type RegistrationState, registrationService } from "./services.ts";

/** Options of all plugins. */
export interface PluginOptions {
  /** Unique among the node's plugins of the type: letters, digits, '.', '-' and '_', at most 253 characters. */
  name: string;
  /** The directory that the agent watches. Created if missing. */
  socketDir: string;
  /** Default: `<socketDir>/<name>.sock`. At most 107 bytes. */
  socketPath?: string;
  /**
   * Gives each instance its own socket, `<socketDir>/<name>-<8 hexadecimal digits>.sock`, so that in a rolling update
   * with surge the agent registers the new instance before the old one ends. Without it, a second instance fails with
   * `conflict`. Ignored with `socketPath`. Default: false.
   */
  rollingUpdate?: boolean;
  /** Default: logs warnings and errors to standard error. */
  log?: Logger;
  /** Stops the plugin when it aborts, like `stop`. */
  signal?: AbortSignal;
  onRegistered?: () => void;
  /** Called when the agent refuses the plugin. The reason includes what it would accept. */
  onRefused?: (reason: string) => void;
  clock?: Clock;
}

/** A plugin being served. */
export interface Plugin {
  readonly socketPath: string;
  /** Resolves when the socket is served. Rejects if it can't be: `invalid`, `conflict` (a second instance). */
  readonly ready: Promise<void>;
  /** Resolves after `stop`. Rejects if the plugin can't continue, such as when another process took its socket. */
  readonly closed: Promise<void>;
  /** The agent's last answer to the registration. */
  readonly registration: RegistrationState;
  /** Stops serving and removes the socket. Takes at most about 2 s. */
  stop(): Promise<void>;
}

/** Dependencies of a kind of plugin. */
export interface PluginParts {
  clock: Clock;
  log: Logger;
  /** Aborts when the plugin stops. */
  stop: AbortSignal;
}

/** What is specific to a type of plugin. */
export interface PluginKind {
  /** The type in the registration. */
  type: string;
  versions: readonly string[];
  /** Maximum size of a request, bytes. Default: gRPC's 4 MiB. */
  maxRequestBytes?: number;
  /** Adds the plugin's service. Called for each new socket. */
  addService(server: Server, parts: PluginParts): void;
  /** Runs besides the service, from the start until `stop` aborts. */
  work?(parts: PluginParts): Promise<void>;
}

const noDirectory =
  'socketDir is missing: the directory that the agent watches, such as "/var/lib/nodekeeper/plugins_registry"';
const INSTANCE_BYTES = 4;
const instancePattern = /^-[0-9a-f]{8}\.sock$/;

/**
 * Serves a plugin. If its socket disappears, it is served again, which registers the plugin again; an agent may remove
 * it for that.
 */
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

  /**
   * Throws `invalid` without `socketDir` and `socketPath`.
   * @param site where the author called, for the errors of `ready` and `closed`
   */
  constructor(options: PluginOptions, kind: PluginKind, site: CallSite) {
    this.#options = options;
    this.#kind = kind;
    this.#site = site;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? createLogger("warn")).child({ plugin: options.name });
    this.#scope = childScope(options.signal);
    if (!options.socketPath && !options.socketDir)
      throw site.error(new NodekeeperError("invalid", noDirectory));
    const instance = options.rollingUpdate ? `-${randomBytes(INSTANCE_BYTES).toString("hex")}` : "";
    this.socketPath = options.socketPath ?? join(options.socketDir, `${options.name}${instance}.sock`);
    this.#watch = new RegistrationWatch({
      socketPath: this.socketPath,
      state: () => this.registration,
      clock: this.#clock,
      log: this.#log,
    });
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.closed = this.#run(ready);
    // The error is also logged. Ignoring the promises must not crash the process.
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
      await this.#removeStaleSockets();
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

  async #removeStaleSockets(): Promise<void> {
    const { name, socketDir, socketPath, rollingUpdate } = this.#options;
    if (!rollingUpdate || socketPath !== undefined) return;
    const isOfInstance = (file: string) =>
      file.startsWith(name) && instancePattern.test(file.slice(name.length));
    await removeStaleSockets(socketDir, isOfInstance, this.#clock);
  }

  #server(): KeptServer {
    const { name } = this.#options;
    return new KeptServer({
      path: this.socketPath,
      limits: { maxRequestBytes: this.#kind.maxRequestBytes },
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
      onServing: (isServing) => {
        if (isServing) return this.#watch.start();
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

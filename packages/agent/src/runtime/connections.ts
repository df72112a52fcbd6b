import { RuntimeNotFound } from "@nodekeeper/api/errors";
import { type Clock, type Logger, SharedWork, stopped } from "@nodekeeper/core/lib";
import { RuntimeConnection } from "./connection.ts";
import { findRuntimeEndpoint, parseRuntimeEndpoint } from "./endpoint.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import { RawCalls } from "./raw-calls.ts";
import type { RuntimeSettings } from "./settings.ts";

export interface ConnectionsOptions {
  /**
   * Endpoint such as `unix:///run/containerd/containerd.sock`, or a path. Empty: the first well-known socket on
   * which a process listens. It is probed for until one is found, and then kept.
   */
  endpoint: string;
  /** Paths to probe if the endpoint is empty. Default: the well-known sockets. */
  candidates?: readonly string[];
  clock: Clock;
  log: Logger;
  metrics: RuntimeMetrics;
  settings: RuntimeSettings;
}

/** The connections to the runtime: one for lists and statuses, one for all other calls. */
export interface OpenedConnections {
  calls: RuntimeConnection;
  raw: RawCalls;
}

/** The connections to the runtime's endpoint, which may not be known yet. */
export class Connections implements Disposable {
  readonly #options: ConnectionsOptions;
  readonly #looking = new SharedWork(() => this.#look(), { outlivesCallers: true });
  #opened: OpenedConnections | undefined;
  #isClosed = false;

  /** Throws `invalid` if the endpoint is not a unix socket. */
  constructor(options: ConnectionsOptions) {
    this.#options = options;
    if (options.endpoint !== "") this.#opened = this.#open(parseRuntimeEndpoint(options.endpoint));
  }

  /** Undefined until the endpoint is known. */
  get opened(): OpenedConnections | undefined {
    return this.#opened;
  }

  /** Finds the endpoint if necessary. Throws `unavailable` with the probe result of each path if there is none. */
  open(): Promise<OpenedConnections> {
    return this.#looking.join();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#opened?.calls[Symbol.dispose]();
    this.#opened?.raw[Symbol.dispose]();
  }

  async #look(): Promise<OpenedConnections> {
    const { clock, log, candidates } = this.#options;
    const { path, lookedAt } = await findRuntimeEndpoint(clock, candidates);
    if (!path) {
      const places = lookedAt.map((place) => `${place.path} (${place.found})`).join(", ");
      throw new RuntimeNotFound({ places });
    }
    if (this.#isClosed) throw stopped("the runtime client was closed");
    log.info({ path }, "container runtime found");
    this.#opened = this.#open(path);
    return this.#opened;
  }

  #open(path: string): OpenedConnections {
    const { clock, log, metrics, settings } = this.#options;
    const { maxMessageSize: maxReceiveBytes, connectDeadlineMs } = settings;
    const onConnected = () => metrics.connections.inc();
    return {
      calls: new RuntimeConnection({
        path,
        maxReceiveBytes,
        connectDeadlineMs,
        clock,
        onConnected: () => {
          onConnected();
          log.info({ path }, "connected to the container runtime");
        },
      }),
      raw: new RawCalls({ path, connectDeadlineMs, clock, onConnected }),
    };
  }
}

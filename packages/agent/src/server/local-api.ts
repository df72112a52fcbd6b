import { type KeptServerOptions, keepServing } from "@nodekeeper/core/grpc";
import {
  type Clock,
  type ErrorId,
  errorIdOf,
  type HealthCheck,
  type Logger,
  messageOf,
  type Runnable,
} from "@nodekeeper/core/lib";
import type { Server } from "nice-grpc";

export interface LocalApiOptions {
  /** Path of the unix socket; at most 107 bytes. Its folder is made where missing. */
  path: string;
  /** Adds the services. They end their streams when the signal aborts. */
  addServices: (server: Server, signal: AbortSignal) => void;
  /** How often the socket file is checked, milliseconds. Default 5 s. */
  checkIntervalMs?: number;
  clock: Clock;
  log: Logger;
}

// Members of its group may connect; the mode of the folder decides who reaches it.
const SOCKET_MODE = 0o660;
const CHECK_INTERVAL_MS = 5_000;
const NOT_SERVED: ErrorId = "NK1711";
// A client's requests are small: a cursor, names.
const LONGEST_REQUEST = 64 * 1024;
// More than the watches that may be open, which are refused with an error: at this limit calls would wait in the
// client without one.
const MOST_STREAMS_OF_A_CONNECTION = 4_096;

/** Serves the agent's gRPC API to other programs on the node, on a unix socket. Serves again when the file was removed. */
export class LocalApi implements Runnable {
  readonly name = "local-api";
  readonly #options: LocalApiOptions;
  #problem: string | undefined = "not served yet";
  #errorId: ErrorId | undefined;
  #isFailing = false;

  constructor(options: LocalApiOptions) {
    this.#options = options;
  }

  /** Why the API is not served; undefined while it is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  healthCheck(): HealthCheck {
    return {
      name: "LocalApiServed",
      kind: "ready",
      check: () =>
        this.#problem === undefined
          ? { ok: true, message: this.#options.path }
          : { ok: false, message: this.#problem, errorId: this.#errorId },
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    const { path, addServices, checkIntervalMs, clock, log } = this.#options;
    const options: KeptServerOptions = {
      path,
      mode: SOCKET_MODE,
      maxRequestBytes: LONGEST_REQUEST,
      maxStreams: MOST_STREAMS_OF_A_CONNECTION,
      checkIntervalMs: checkIntervalMs ?? CHECK_INTERVAL_MS,
      addServices: (server) => addServices(server, signal),
      onServing: () => {
        this.#problem = undefined;
        this.#isFailing = false;
      },
      onLost: () => {
        this.#problem = `local API: ${path} was removed`;
        this.#errorId = NOT_SERVED;
      },
      clock,
      log,
    };
    // Another agent on the node, or a folder that can't be written: the rest of the agent continues.
    const onFailure = (error: unknown) => {
      const errorId = errorIdOf(error) ?? NOT_SERVED;
      if (!this.#isFailing)
        log.warn({ err: error, errorId, path }, "local API can't be served, will be tried again");
      this.#isFailing = true;
      this.#errorId = errorId;
      this.#problem = `local API: ${messageOf(error)}`;
    };
    await keepServing(options, onFailure, signal);
  }
}

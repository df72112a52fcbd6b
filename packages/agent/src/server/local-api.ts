import { LocalApiNotServed } from "@nodekeeper/api/errors";
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
  /** Path of the unix socket; at most 107 bytes. Its directory is created if missing. */
  path: string;
  /** Adds the services. They must end their streams when the signal aborts. */
  addServices: (server: Server, signal: AbortSignal) => void;
  clock: Clock;
  log: Logger;
  /** Starts the watch of the socket's directory. Default: a private one that reports nothing. */
  watches?: KeptServerOptions["watches"];
}

// Members of the socket's group may connect; the directory's mode restricts access further.
const SOCKET_MODE = 0o660;
const NOT_SERVED: ErrorId = LocalApiNotServed.id;
// Requests are small: a cursor, names.
const LONGEST_REQUEST = 64 * 1024;
// Above the limit of open watches, which refuses with an error: at this limit, calls would block in the client without
// one.
const MOST_STREAMS_OF_A_CONNECTION = 4_096;

/**
 * Serves the agent's gRPC API to other programs on the node, on a unix socket. Recreates the socket if it is removed.
 */
export class LocalApi implements Runnable {
  readonly name = "local-api";
  readonly #options: LocalApiOptions;
  #problem: string | undefined = "not served yet";
  #errorId: ErrorId | undefined;
  #isFailing = false;

  constructor(options: LocalApiOptions) {
    this.#options = options;
  }

  /** Why the API is not served. Undefined while it is. */
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
    const { path, addServices, clock, log, watches } = this.#options;
    const options: KeptServerOptions = {
      path,
      mode: SOCKET_MODE,
      limits: { maxRequestBytes: LONGEST_REQUEST, maxStreams: MOST_STREAMS_OF_A_CONNECTION },
      addServices: (server) => addServices(server, signal),
      onServing: (isServing) => {
        this.#problem = isServing ? undefined : `local API: ${path} was removed`;
        this.#errorId = NOT_SERVED;
        if (isServing) this.#isFailing = false;
      },
      clock,
      log,
      watches,
    };
    // For example, another agent on the node, or a directory that is not writable. The rest of the agent continues.
    const onFailure = (error: unknown) => {
      const errorId = errorIdOf(error) ?? NOT_SERVED;
      if (!this.#isFailing)
        log.warn({ err: error, errorId, path }, "failed to serve the local API, retrying");
      this.#isFailing = true;
      this.#errorId = errorId;
      this.#problem = `local API: ${messageOf(error)}`;
    };
    await keepServing(options, onFailure, signal);
  }
}

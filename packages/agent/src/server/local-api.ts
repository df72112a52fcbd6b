import { randomBytes } from "node:crypto";
import { type OwnSocket, ownershipOf, placeSocket, removeSocket } from "@nodekeeper/core/grpc";
import {
  type Clock,
  type ErrorId,
  errorIdOf,
  type HealthCheck,
  type Logger,
  NodekeeperError,
  type Runnable,
} from "@nodekeeper/core/lib";
import { createServer, type Server } from "nice-grpc";

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
const STOP_GRACE_MS = 1_000;
const RETRY_MS = 5_000;
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
    const { clock, log, path } = this.#options;
    while (!signal.aborted) {
      try {
        await this.#serve(signal);
      } catch (error) {
        if (signal.aborted) return;
        // Another agent on the node, or a folder that can't be written: the rest of the agent continues.
        if (!this.#isFailing)
          log.warn(
            { err: error, errorId: errorIdOf(error) ?? "NK1711", path },
            "local API can't be served, will be tried again",
          );
        this.#isFailing = true;
        this.#problem = `local API: ${(error as Error).message}`;
        this.#errorId = errorIdOf(error) ?? "NK1711";
        await clock.sleep(RETRY_MS, signal).catch(() => {});
      }
    }
  }

  async #serve(signal: AbortSignal): Promise<void> {
    const { clock, log, path, addServices, checkIntervalMs = CHECK_INTERVAL_MS } = this.#options;
    const server = createServer({
      "grpc.max_receive_message_length": LONGEST_REQUEST,
      "grpc.max_concurrent_streams": MOST_STREAMS_OF_A_CONNECTION,
      "grpc.enable_channelz": 0,
    });
    addServices(server, signal);
    let socket: OwnSocket | undefined;
    try {
      const hidden = `.${process.pid}-${randomBytes(4).toString("hex")}.sock`;
      socket = await placeSocket(
        path,
        hidden,
        clock,
        async (at) => void (await server.listen(`unix:${at}`)),
        SOCKET_MODE,
      );
      this.#problem = undefined;
      this.#isFailing = false;
      log.info({ path }, "local API is served");
      while (!signal.aborted) {
        await clock.sleep(checkIntervalMs, signal).catch(() => {});
        if (signal.aborted) break;
        const ownership = await ownershipOf(socket, clock);
        if (ownership === "taken")
          throw new NodekeeperError("conflict", `another process took ${path}`, { id: "NK1706" });
        if (ownership === "lost") {
          log.warn({ path }, "socket of the local API disappeared, serving again");
          return;
        }
      }
    } finally {
      if (socket) await removeSocket(socket, clock);
      await shutDown(server, clock);
    }
  }
}

async function shutDown(server: Server, clock: Clock): Promise<void> {
  const timer = clock.after(STOP_GRACE_MS, () => server.forceShutdown());
  await server.shutdown();
  timer.cancel();
}

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { NodekeeperError, stopped, toError } from "@nodekeeper/core/lib";
import type { Dispatcher } from "./dispatcher.ts";

const MAX_CONNECTIONS = 4096;

/** Listens for HTTP connections. Can be opened and closed repeatedly on the same port. */
export class Listener {
  readonly #address: string;
  readonly #dispatcher: Dispatcher;
  #port: number;
  #server: Server | undefined;
  #abort = new AbortController();

  constructor(address: string, port: number, dispatcher: Dispatcher) {
    this.#address = address;
    this.#port = port;
    this.#dispatcher = dispatcher;
  }

  /** Such as "http://127.0.0.1:12345". Throws before the first start if the port is not known. */
  get url(): string {
    if (this.#port === 0)
      throw new NodekeeperError("unavailable", "the development API server was not started yet");
    return `http://${this.#address.includes(":") ? `[${this.#address}]` : this.#address}:${this.#port}`;
  }

  /** Starts to accept connections. Rejects with `unavailable` if the port is in use. */
  async open(): Promise<void> {
    if (this.#server) return;
    const abort = new AbortController();
    const server = createServer((request, response) => {
      void this.#dispatcher.handle(request, response, abort.signal);
    });
    server.maxConnections = MAX_CONNECTIONS;
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) => {
        const where = `${this.#address}:${this.#port}`;
        reject(
          new NodekeeperError(
            "unavailable",
            `the development API server can't listen on ${where}: ${toError(cause).message}`,
            { cause },
          ),
        );
      });
      server.listen(this.#port, this.#address, resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
    this.#abort = abort;
  }

  /** Stops accepting and closes all connections. */
  async close(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    this.#abort.abort(stopped("the development API server stops"));
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    // Waits one turn, so that pending responses are sent before their connections are closed.
    await new Promise<void>((resolve) => setImmediate(resolve));
    server.closeAllConnections();
    await closed;
  }
}

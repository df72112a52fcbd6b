import { once } from "node:events";
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Passes connections to the collector and counts the bytes sent to it. */
export class CountingRelay {
  readonly #sockets = new Set<Socket>();
  readonly #server;
  bytes = 0;

  constructor(port: number) {
    this.#server = createServer((client) => {
      const upstream = connect(port, "localhost");
      client.on("data", (chunk) => {
        this.bytes += chunk.length;
      });
      client.pipe(upstream).pipe(client);
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          other.destroy();
          this.#sockets.delete(socket);
        });
      }
    });
  }

  /** Returns its endpoint. */
  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

const NEWLINE = "\n".charCodeAt(0);
const BUFFER_BYTES = 1024 * 1024;

/** Counts the requests that the collector accepted: it appends a line for each. */
export class AcceptedRequests {
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;
  readonly #perSecond = new Map<number, number>();
  #read = 0;

  constructor(path: string) {
    this.#path = path;
    this.#timer = setInterval(() => this.#count(), 50);
  }

  get total(): number {
    return [...this.#perSecond.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Returns the number of requests in the busiest second since a time, milliseconds since the epoch. */
  busiest(since: number): number {
    return Math.max(
      0,
      ...[...this.#perSecond].flatMap(([second, count]) => (second * 1_000 >= since ? [count] : [])),
    );
  }

  #count(): void {
    if (!existsSync(this.#path)) return;
    const file = openSync(this.#path, "r");
    const buffer = Buffer.alloc(BUFFER_BYTES);
    const second = Math.floor(Date.now() / 1_000);
    for (let length = -1; length !== 0; this.#read += length) {
      length = readSync(file, buffer, 0, BUFFER_BYTES, this.#read);
      const lines = buffer.subarray(0, length).filter((byte) => byte === NEWLINE).length;
      if (lines > 0) this.#perSecond.set(second, (this.#perSecond.get(second) ?? 0) + lines);
    }
    closeSync(file);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

import { connect, createServer, type Socket } from "node:net";

/**
 * A socket that passes connections on to another one, and counts those that carry data: the agent also connects at intervals
 * to learn whether a process listens, and sends nothing.
 */
export class CountedSocket {
  readonly path: string;
  used = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server;

  constructor(path: string, target: string) {
    this.path = path;
    this.#server = createServer((socket) => {
      socket.once("data", () => this.used++);
      const passed = connect(target);
      for (const [from, to] of [
        [socket, passed],
        [passed, socket],
      ] as const) {
        this.#sockets.add(from);
        from.on("error", () => to.destroy());
        from.on("close", () => to.destroy());
        from.pipe(to);
      }
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.path, resolve));
  }

  stop(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

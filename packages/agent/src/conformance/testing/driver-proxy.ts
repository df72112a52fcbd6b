import { connect, createServer, type Socket } from "node:net";

/** A proxy for a driver. Can close all connections, as if the driver's process had been restarted. */
export class DriverProxy {
  readonly #sockets = new Set<Socket>();
  readonly #server;

  constructor(place: string, to: string) {
    this.#server = createServer((socket) => {
      const other = connect(to);
      for (const [one, peer] of [
        [socket, other],
        [other, socket],
      ] as const) {
        this.#sockets.add(one);
        one.on("error", () => {});
        one.once("close", () => {
          this.#sockets.delete(one);
          peer.destroy();
        });
        one.pipe(peer);
      }
    }).listen(place);
  }

  /** Closes all connections. New ones are accepted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

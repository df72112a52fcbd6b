import { connect, type Socket } from "node:net";

/**
 * A connection to a socket on which nothing is sent. It stays open as long as the process that accepted it: a driver that
 * is started again serves the same socket, but not this connection. Not for longer than two minutes, after which servers may
 * close a connection without a request.
 */
export class HeldConnection implements Disposable {
  readonly #socket: Socket;
  /** Resolves when the driver has closed the connection. */
  readonly closed: Promise<void>;
  isOpen = true;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    void this.closed.then(() => {
      this.isOpen = false;
    });
    // A server sends its settings at once. Unread, they would hide the end.
    socket.resume();
  }

  static async open(path: string): Promise<HeldConnection> {
    const socket = connect({ path });
    // `on`, not `once`: a later error must not be thrown.
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).on("error", reject));
    return new HeldConnection(socket);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

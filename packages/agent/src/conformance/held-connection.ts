import { connect, type Socket } from "node:net";

/**
 * An idle connection that detects a restart of the driver: a restarted driver serves the same socket, but the
 * connection closes when the process that accepted it exits. Reliable for at most two minutes, after which servers may
 * close a connection without requests.
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

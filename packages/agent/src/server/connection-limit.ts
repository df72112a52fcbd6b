import type { Socket } from "node:net";

/**
 * Bounds the open connections of the status server.
 *
 * 1. At most `most` connections are open.
 * 2. A new connection is admitted while another one waits for no answer: the least recently used of these is closed.
 *    Idle and half-sent connections can't keep the kubelet from `/livez`.
 * 3. A connection has at most one request at a time.
 */
export class ConnectionLimit {
  readonly #most: number;
  readonly #onClosed: () => void;
  /** By peer, in the order of their last use. A TLS socket and the TCP socket below it have the same peer. */
  readonly #idle = new Map<string, Socket>();
  readonly #busy = new Map<string, { socket: Socket; isPipelined: boolean }>();

  /** @param onClosed called for each connection that is closed because of the limit */
  constructor(most: number, onClosed: () => void) {
    this.#most = most;
    this.#onClosed = onClosed;
  }

  /** Admits a new TCP connection, and closes the least recently used idle one where there are too many. */
  admit(socket: Socket): void {
    const peer = peerOf(socket);
    socket.once("close", () => {
      if (this.#idle.get(peer) === socket) this.#idle.delete(peer);
      if (this.#busy.get(peer)?.socket === socket) this.#busy.delete(peer);
    });
    const others = this.#idle.size + this.#busy.size;
    const [[leastRecentPeer, leastRecent] = [peer, socket]] = this.#idle;
    this.#idle.set(peer, socket);
    if (others < this.#most) return;
    this.#idle.delete(leastRecentPeer);
    leastRecent.destroy();
    this.#onClosed();
  }

  /** Called for each request. False where it must not be answered: the connection's last one is not answered yet. */
  begin(connection: Socket): boolean {
    const peer = peerOf(connection);
    const busy = this.#busy.get(peer);
    if (busy) busy.isPipelined = true;
    const socket = this.#idle.get(peer);
    if (!socket) return false;
    this.#idle.delete(peer);
    this.#busy.set(peer, { socket, isPipelined: false });
    return true;
  }

  /** Whether requests came in behind the one that is answered now. */
  isPipelined(connection: Socket): boolean {
    return this.#busy.get(peerOf(connection))?.isPipelined ?? false;
  }

  /** Called when the answer was written to the connection. */
  end(connection: Socket): void {
    const peer = peerOf(connection);
    const busy = this.#busy.get(peer);
    if (!busy) return;
    this.#busy.delete(peer);
    this.#idle.set(peer, busy.socket);
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

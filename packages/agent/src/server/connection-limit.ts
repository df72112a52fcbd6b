import type { Socket } from "node:net";

/**
 * Bounds the open connections of the status server.
 *
 * 1. At most `most` connections are open.
 * 2. At the limit, a new connection replaces the least recently used idle one; if none is idle, the new one is closed.
 *    Idle and half-sent connections cannot keep the kubelet from `/livez`.
 * 3. A connection serves at most one request at a time.
 */
export class ConnectionLimit {
  readonly #most: number;
  readonly #onClosed: () => void;
  /** By peer, least recently used first. A TLS socket and its underlying TCP socket have the same peer. */
  readonly #idle = new Map<string, Socket>();
  readonly #busy = new Map<string, { socket: Socket; isPipelined: boolean }>();

  /** @param onClosed called for each connection closed because of the limit */
  constructor(most: number, onClosed: () => void) {
    this.#most = most;
    this.#onClosed = onClosed;
  }

  /** Admits a new TCP connection. Closes the least recently used idle one if there are too many. */
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

  /**
   * Called for each request. Returns false if it must not be served because the previous request on the connection is
   * still in progress.
   */
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

  /** Whether requests are pipelined behind the current one. */
  isPipelined(connection: Socket): boolean {
    return this.#busy.get(peerOf(connection))?.isPipelined ?? false;
  }

  /** Called after the response has been written to the connection. */
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

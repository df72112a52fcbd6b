import type { Server as HttpServer } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { type LoopTurns, type Pace, PacedSocket } from "@nodekeeper/core/lib";

type Listener<Connection> = (this: unknown, connection: Connection | PacedSocket) => void;

/**
 * Bytes of requests read at once: some tens of the smallest requests. node:http creates objects for every request in a
 * 64 KiB chunk before the first one is served.
 */
const PIECE_BYTES = 1_024;

/**
 * Spreads the work for connections over turns of the event loop: accepting them, TLS handshakes, and reading requests,
 * for all connections together. Must be called before other listeners are added to the server.
 */
export function paceConnections(server: HttpServer | HttpsServer, isTls: boolean, turns: LoopTurns): void {
  if (isTls) {
    replaceListeners<Socket>(server, "connection", (socket, serve) => {
      // The server handles errors only once it has the socket.
      const ignore = () => {};
      socket.on("error", ignore);
      void turns.pass().then(() => {
        socket.off("error", ignore);
        if (!socket.destroyed) serve(socket);
      });
    });
  }
  replaceListeners<Socket | TLSSocket>(server, isTls ? "secureConnection" : "connection", (socket, serve) =>
    serve(new PacedSocket(socket, new TurnPace(turns))),
  );
}

function replaceListeners<Connection>(
  server: HttpServer | HttpsServer,
  event: string,
  take: (connection: Connection, serve: (connection: Connection | PacedSocket) => void) => void,
): void {
  const listeners = server.listeners(event) as Listener<Connection>[];
  server.removeAllListeners(event);
  server.on(event, (connection: Connection) =>
    take(connection, (taken) => {
      for (const listener of listeners) listener.call(server, taken);
    }),
  );
}

/** Passes on one piece per turn of this connection. */
class TurnPace implements Pace {
  readonly #turns: LoopTurns;
  #isAdmitted = false;

  constructor(turns: LoopTurns) {
    this.#turns = turns;
  }

  next(chunk: Buffer, start: number): number {
    if (!this.#isAdmitted) return start;
    this.#isAdmitted = false;
    return Math.min(start + PIECE_BYTES, chunk.length);
  }

  later(callback: () => void): void {
    void this.#turns.pass().then(() => {
      this.#isAdmitted = true;
      callback();
    });
  }
}

import { tracingChannel } from "node:diagnostics_channel";
import type { Server, Socket } from "node:net";
import { errorIdOf, type Logger, PacedSocket } from "../lib/index.ts";
import { FramePace } from "./frame-pace.ts";

// Length of the client connection preface: RFC 9113, 3.4.
const PREFACE_BYTES = 24;

/**
 * Applies a frame budget (`FrameBudget`) to the clients of the HTTP/2 server that `listen` starts on a unix socket. The
 * gRPC library does not expose its server, but Node publishes every server that starts to listen.
 * @param path path of the socket as passed to `listen`
 */
export async function listenBounded(path: string, listen: () => Promise<void>, log: Logger): Promise<void> {
  const listening = tracingChannel("net.server.listen");
  const handlers = {
    asyncStart(message: object) {
      const { server, options } = message as { server: Server; options: { path?: string } };
      if (options.path === path) boundClients(server, log);
    },
  };
  listening.subscribe(handlers as Parameters<typeof listening.subscribe>[0]);
  try {
    await listen();
  } finally {
    listening.unsubscribe(handlers as Parameters<typeof listening.unsubscribe>[0]);
  }
}

function boundClients(server: Server, log: Logger): void {
  const listeners = server.listeners("connection") as ((socket: unknown) => void)[];
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => {
    const bounded = new PacedSocket(socket, new FramePace(PREFACE_BYTES));
    bounded.on("error", (error) => {
      const errorId = errorIdOf(error);
      if (errorId) log.warn({ err: error, errorId }, "connection of a client closed");
    });
    for (const listener of listeners) listener.call(server, bounded);
  });
}

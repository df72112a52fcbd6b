import { chmodSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { longestSocketPath, stopped } from "@nodekeeper/core/lib";

const SOCKET = "handover.sock";

/** Offer to hand over a locked state directory. */
interface HandoverOffer {
  /** Aborts when another agent has requested the handover. The socket has been removed by then. */
  asked: AbortSignal;
  /**
   * Removes the socket. Must be called before the lock is released, because the next holder creates a socket
   * with the same name.
   */
  close(): void;
}

/**
 * Offers to hand over a state directory by a socket in it. Another agent requests the handover by connecting
 * to the socket; no data is sent. Must only be called by the holder of the lock: it replaces the socket of a
 * killed predecessor. Throws the errors of `listen`.
 */
export async function offerHandover(directory: string): Promise<HandoverOffer> {
  const path = join(directory, SOCKET);
  rmSync(path, { force: true });
  const controller = new AbortController();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.destroy();
    server.close();
    controller.abort(stopped("another agent takes over"));
  });
  server.unref();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
  chmodSync(path, 0o600);
  return { asked: controller.signal, close: () => void server.close() };
}

/** Returns whether the socket's path is within the kernel's limit. */
export function canOfferHandover(directory: string): boolean {
  return Buffer.byteLength(join(directory, SOCKET)) <= longestSocketPath;
}

/**
 * Requests the handover from the agent that has locked the directory. Returns false if it does not listen.
 * Never rejects.
 */
export function askForHandover(directory: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path: join(directory, SOCKET) });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}

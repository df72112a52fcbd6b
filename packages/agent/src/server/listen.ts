import type { Server } from "node:http";
import { type ErrorCode, type ErrorId, NodekeeperError } from "@nodekeeper/core/lib";
import { formatAddress, type ListenAddress } from "./address.ts";

/** Binds the server's address. Throws `conflict`, `forbidden`, `invalid` or `unavailable`, naming the address. */
export function listen(server: Server, { host, port }: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(bindError(formatAddress(host, port), error));
    server.once("error", onError);
    server.listen({ host, port }, () => {
      server.off("error", onError);
      resolve();
    });
  });
}

function bindError(address: string, error: NodeJS.ErrnoException): NodekeeperError {
  const failed = (code: ErrorCode, id: ErrorId, what: string) =>
    new NodekeeperError(code, `status server: ${what}`, { id, cause: error });
  switch (error.code) {
    case "EADDRINUSE":
      return failed("conflict", "NK1701", `another process listens on ${address}`);
    case "EACCES":
      return failed("forbidden", "NK1702", `not allowed to listen on ${address}`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return failed("invalid", "NK1703", `${address} is not an address of this machine`);
    default:
      return failed("unavailable", "NK1703", `can't listen on ${address}`);
  }
}

/** Resolves when the signal aborts; rejects with the error by which a server ends. */
export function failureOrAbort(server: Server, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void) => {
      signal.removeEventListener("abort", onAbort);
      server.off("error", onError);
      settle();
    };
    const onAbort = () => finish(resolve);
    const onError = (error: Error) => finish(() => reject(error));
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    server.on("error", onError);
  });
}

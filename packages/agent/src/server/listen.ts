import type { Server } from "node:http";
import { StatusAddressForbidden, StatusAddressInUse, StatusAddressInvalid } from "@nodekeeper/api/errors";
import type { NodekeeperError } from "@nodekeeper/core/lib";
import { formatAddress, type ListenAddress } from "./address.ts";

/**
 * Binds the server's address. Throws `conflict`, `forbidden`, `invalid` or `unavailable`; the message names the
 * address.
 */
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
  const details = { cause: error };
  switch (error.code) {
    case "EADDRINUSE":
      return new StatusAddressInUse({ address }, details);
    case "EACCES":
      return new StatusAddressForbidden({ address }, details);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new StatusAddressInvalid(
        { problem: `status server: ${address} is not an address of this machine` },
        details,
      );
    default:
      return new StatusAddressInvalid(
        { problem: `status server: can't listen on ${address}` },
        { ...details, code: "unavailable" },
      );
  }
}

/** Resolves when the signal aborts. Rejects with the error that stops the server. */
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

import { once } from "node:events";
import type { Server } from "node:http";
import { StatusAddressForbidden, StatusAddressInUse, StatusAddressInvalid } from "@nodekeeper/api/errors";
import type { NodekeeperError } from "@nodekeeper/core/lib";
import { formatAddress, type ListenAddress } from "./address.ts";

/**
 * Binds the server's address. Throws `conflict`, `forbidden`, `invalid` or `unavailable`; the message names the
 * address.
 */
export async function listen(server: Server, { host, port }: ListenAddress): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (error) {
    throw bindError(formatAddress(host, port), error as NodeJS.ErrnoException);
  }
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
export async function failureOrAbort(server: Server, signal: AbortSignal): Promise<void> {
  const [error] = await once(server, "error", { signal }).catch(() => []);
  if (error) throw error;
}

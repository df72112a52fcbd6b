import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type Clock, childScope, deadlineScope, stopped } from "@nodekeeper/core/lib";
import type { OpenStream } from "./stream/streams.ts";

export interface SendStreamOptions {
  clock: Clock;
  /** Ends the stream. */
  signal: AbortSignal;
  headers: Record<string, string>;
  /** Called each minute; where it throws, the stream ends: a permission may be revoked. */
  checkAccess: (signal: AbortSignal) => Promise<void>;
  /** Called where a client is cut off because it does not read. */
  onCut: () => void;
  /** Called with any other error that ends the stream. */
  onError: (error: unknown) => void;
}

/** How long a client may take to read what it was sent, milliseconds. */
const DRAIN_DEADLINE_MS = 20_000;
const ACCESS_INTERVAL_MS = 60_000;

/**
 * Sends a stream until the client leaves, the signal aborts, or the client does not read for 20 s. At most one piece waits
 * in memory for a client. Never rejects.
 */
export async function sendStream(
  response: ServerResponse,
  stream: OpenStream,
  { clock, signal, headers, checkAccess, onCut, onError }: SendStreamOptions,
): Promise<void> {
  using scope = childScope(signal);
  response.once("close", () => scope.abort(stopped("the client closed the connection")));
  response.writeHead(200, headers);
  response.flushHeaders();
  let checkedAt = clock.monotonic();
  try {
    for await (const piece of stream.pieces(scope.signal)) {
      if (clock.monotonic() - checkedAt >= ACCESS_INTERVAL_MS) {
        await checkAccess(scope.signal);
        checkedAt = clock.monotonic();
      }
      if (response.write(piece) || (await drained(response, clock, scope.signal))) continue;
      onCut();
      response.destroy();
      return;
    }
  } catch (error) {
    if (!scope.signal.aborted) onError(error);
    // The client notices by the end of its connection.
    response.destroy();
  } finally {
    stream.close();
    response.end();
  }
}

/** Waits until the client has read what it was sent; false where it takes too long. Throws the signal's reason. */
async function drained(response: ServerResponse, clock: Clock, signal: AbortSignal): Promise<boolean> {
  using scope = deadlineScope(clock, DRAIN_DEADLINE_MS, "reading a stream", signal);
  try {
    await once(response, "drain", { signal: scope.signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (scope.signal.aborted) return false;
    throw error;
  }
}

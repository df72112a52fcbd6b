import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { type Clock, childScope, deadlineScope, stopped } from "@nodekeeper/core/lib";
import type { OpenStream } from "./stream/streams.ts";

export interface SendStreamOptions {
  clock: Clock;
  /** Aborting it ends the stream. */
  signal: AbortSignal;
  headers: Record<string, string>;
  /** Called once a minute, because a permission may be revoked. If it throws, the stream ends. */
  checkAccess: (signal: AbortSignal) => Promise<void>;
  /** Called if a client is disconnected because it does not read. */
  onCut: () => void;
  /** Called with any other error that ends the stream. */
  onError: (error: unknown) => void;
}

/** How long a client may take to read what was sent, milliseconds. */
const DRAIN_DEADLINE_MS = 20_000;
const ACCESS_INTERVAL_MS = 60_000;

/**
 * Sends a stream until the client disconnects, the signal aborts, or the client does not read for 20 s. At most one
 * piece per client is buffered. Never rejects.
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
    // The client detects this by the closed connection.
    response.destroy();
  } finally {
    stream.close();
    response.end();
  }
}

/** Waits until the client has read what was sent. Resolves with false on timeout. Throws the signal's reason. */
async function drained(response: ServerResponse, clock: Clock, signal: AbortSignal): Promise<boolean> {
  using scope = deadlineScope(clock, { ms: DRAIN_DEADLINE_MS, name: "reading a stream" }, signal);
  try {
    await once(response, "drain", { signal: scope.signal });
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (scope.signal.aborted) return false;
    throw error;
  }
}

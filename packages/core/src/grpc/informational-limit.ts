import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientHttp2Stream } from "node:http2";
import { NodekeeperError } from "../lib/index.ts";

// Node publishes every client stream here, including those of the gRPC library, which does not expose them.
const STREAM_CREATED = "http2.client.stream.created";

/** Maximum number of 1xx responses (RFC 9110, 15.2) to one request. gRPC servers do not send any. */
export const MAX_INFORMATIONAL_ANSWERS = 8;

/**
 * Closes HTTP/2 connections whose server sends more than a few 1xx responses to one request. Each takes ten bytes on
 * the wire and a call into JavaScript, so that a flood of them blocks the event loop for seconds. Applies to all HTTP/2
 * clients of the process until disposed.
 */
export function limitInformationalAnswers(): Disposable {
  const onCreated = (message: unknown) => watch((message as { stream: ClientHttp2Stream }).stream);
  subscribe(STREAM_CREATED, onCreated);
  return { [Symbol.dispose]: () => void unsubscribe(STREAM_CREATED, onCreated) };
}

function watch(stream: ClientHttp2Stream): void {
  let answers = 0;
  stream.on("headers", () => {
    if (++answers <= MAX_INFORMATIONAL_ANSWERS) return;
    const message = `the peer sent too many informational responses: more than ${MAX_INFORMATIONAL_ANSWERS} to one request`;
    stream.session?.destroy(new NodekeeperError("invalid", message));
  });
}

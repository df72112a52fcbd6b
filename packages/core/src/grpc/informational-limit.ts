import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientHttp2Stream } from "node:http2";
import { NodekeeperError } from "../lib/index.ts";

// Node reports each client stream here, also those of gRPC's library, which gives no access to them.
const STREAM_CREATED = "http2.client.stream.created";

/** Informational answers (RFC 9110, 15.2) that a peer may send for one request. No gRPC server sends any. */
export const MAX_INFORMATIONAL_ANSWERS = 8;

/**
 * Ends each HTTP/2 connection whose server sends more than a few informational answers to one request. They cost ten
 * bytes on the wire and a call into JavaScript each: a stream of them holds up the event loop for seconds. Holds for
 * all HTTP/2 clients of the process until it is disposed of.
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
    const message = `the peer sends informational answers without end: more than ${MAX_INFORMATIONAL_ANSWERS} to one request`;
    stream.session?.destroy(new NodekeeperError("invalid", message));
  });
}

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Reply } from "./reply.ts";

/** Headers of every response: not cached, not sniffed for another type, not embedded by other origins. */
export function commonHeaders(contentType: string): Record<string, string> {
  return {
    "Content-Type": contentType,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    // No page of another origin may embed a response, in a frame or otherwise, or keep a reference to its window.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
  };
}

/** Writes a complete response. @param stopping whether to close the connection after it */
export function sendReply(
  request: IncomingMessage,
  response: ServerResponse,
  reply: Reply,
  stopping: boolean,
): void {
  if (response.destroyed) return;
  const hasBody =
    request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined;
  response.writeHead(reply.status, {
    ...commonHeaders(reply.contentType),
    "Content-Length": Buffer.byteLength(reply.body),
    // An unread body must not be parsed as the next request.
    ...(hasBody || stopping ? { Connection: "close" } : {}),
    ...reply.headers,
  });
  response.end(request.method === "HEAD" ? undefined : reply.body);
}

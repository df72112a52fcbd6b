import type { IncomingMessage, ServerResponse } from "node:http";
import type { Reply } from "./reply.ts";

/** What every answer has: it is not stored, not taken for another type, and not embedded elsewhere. */
export function commonHeaders(contentType: string): Record<string, string> {
  return {
    "Content-Type": contentType,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    // No page of another origin embeds an answer, in a frame or otherwise, or keeps hold of a window with one.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
  };
}

/** Writes a whole answer. @param stopping whether the connection ends with it */
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
    // A body that is not read must not be taken for the next request.
    ...(hasBody || stopping ? { Connection: "close" } : {}),
    ...reply.headers,
  });
  response.end(request.method === "HEAD" ? undefined : reply.body);
}

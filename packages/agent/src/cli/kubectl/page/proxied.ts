import { type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from "node:http";
import { AgentUnreachable } from "@nodekeeper/api/errors";
import { messageOf } from "@nodekeeper/core/lib";
import { commonHeaders } from "../../../server/index.ts";

// Only these headers are forwarded. A compromised node must not set cookies for other servers on this machine, redirect
// the browser, or receive the browser's headers about the user.
const REQUEST_HEADERS = ["accept", "last-event-id"] as const;
const RESPONSE_HEADERS = ["content-length", "content-security-policy", "date", "retry-after"] as const;

/**
 * Answers a request with the response of an agent, as it arrives. Resolves when the response has ended. Throws
 * `unavailable` if the agent does not answer.
 * @param address "host:port" of its status server
 * @param path with the query
 */
export async function proxy(
  address: string,
  path: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const ended = Promise.withResolvers<void>();
  outgoing.once("close", ended.resolve);
  const headers = some(incoming.headers, REQUEST_HEADERS);
  const call = request(
    `http://${address}${path}`,
    { method: incoming.method, headers, agent: false },
    (answer) => {
      const own = commonHeaders(answer.headers["content-type"] ?? "text/plain");
      for (const [name, value] of Object.entries(own)) outgoing.setHeader(name, value);
      outgoing.setHeader("Referrer-Policy", "no-referrer");
      // The agent's Content-Security-Policy replaces the common one: header names are case-insensitive.
      const passed = some(answer.headers, RESPONSE_HEADERS);
      for (const [name, value] of Object.entries(passed)) outgoing.setHeader(name, value);
      outgoing.writeHead(answer.statusCode ?? 502);
      answer.on("error", () => outgoing.destroy());
      answer.pipe(outgoing);
    },
  );
  call.on("error", (error) => {
    if (outgoing.headersSent) outgoing.destroy();
    ended.reject(new AgentUnreachable({ problem: `the agent does not respond (${messageOf(error)})` }));
  });
  call.end();
  try {
    await ended.promise;
  } finally {
    call.destroy();
  }
}

function some(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const present = names.flatMap((name) => {
    const value = headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(present);
}

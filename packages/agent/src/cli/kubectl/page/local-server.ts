import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf, messageWithId, NodekeeperError } from "@nodekeeper/core/lib";
import {
  errorReply,
  isCrossSite,
  isHostAllowed,
  prefersPage,
  type Reply,
  sendReply,
  textReply,
} from "../../../server/index.ts";

const HOST = "127.0.0.1";
const HEADERS_TIMEOUT_MS = 5_000;
const MAX_CONNECTIONS = 200;

/**
 * Returns the reply to a request, or undefined if it has written the response itself. A thrown error is sent as an
 * error reply.
 */
export type LocalHandler = (
  request: IncomingMessage,
  url: URL,
  response: ServerResponse,
) => Promise<Reply | undefined>;

/** A server that listens on the loopback address of the user's machine, until it is stopped. */
export interface LocalServer {
  /** "http://127.0.0.1:41235" */
  readonly origin: string;
  /** Closes all connections. */
  stop(): void;
}

/**
 * Serves requests on the loopback address. Throws `unavailable` if the port can't be bound.
 *
 * 1. Pages of other origins, and names of other hosts (DNS rebinding), are refused before the handler is called.
 * 2. Other users of the machine can connect: the handler requires a secret for all but the page's own files.
 * @param port 0: a free one
 * @param methods that the handler takes
 */
export async function serveLocally(
  port: number,
  methods: readonly string[],
  handle: LocalHandler,
): Promise<LocalServer> {
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS }, async (request, response) => {
    const reply = await answer(methods, handle, request, response);
    if (reply) sendReply(request, response, withoutReferrer(reply), false);
  });
  server.maxConnections = MAX_CONNECTIONS;
  server.listen(port, HOST);
  try {
    await once(server, "listening");
  } catch (error) {
    const message = `can't listen on ${HOST}:${port} (${messageOf(error)})`;
    throw new NodekeeperError("unavailable", message, { cause: error });
  }
  return {
    origin: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(
  methods: readonly string[],
  handle: LocalHandler,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Reply | undefined> {
  const { method = "", headers } = request;
  try {
    if (!methods.includes(method)) {
      const reply = errorReply(new NodekeeperError("unsupported", `method ${method} is not served`));
      return { ...reply, status: 405, headers: { Allow: methods.join(", ") } };
    }
    if (isCrossSite(headers, method))
      throw new NodekeeperError("forbidden", "requests from pages of other origins are refused");
    if (headers.host === undefined || !isHostAllowed(headers.host, HOST, HOST))
      throw new NodekeeperError("forbidden", "this server is reached by localhost or its address only");
    const target = `http://localhost${request.url}`;
    if (!request.url?.startsWith("/") || !URL.canParse(target))
      throw new NodekeeperError("invalid", "the request's path is not a URL path");
    return await handle(request, new URL(target), response);
  } catch (error) {
    if (response.headersSent) {
      response.destroy();
      return undefined;
    }
    const reply = errorReply(error);
    // A user who follows a link reads it.
    return prefersPage(headers.accept) ? textReply(reply.status, messageWithId(error)) : reply;
  }
}

// The address has a secret.
function withoutReferrer(reply: Reply): Reply {
  return { ...reply, headers: { "Referrer-Policy": "no-referrer", ...reply.headers } };
}

/** The error of all addresses that do not exist, or that the request has no secret for. */
export function nothingHere(): NodekeeperError {
  return new NodekeeperError("notFound", "there is nothing at this address");
}

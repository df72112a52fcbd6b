import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { ApiServerUnreachable, ObjectTooLarge } from "@nodekeeper/api/errors";
import { type LoopTurns, NodekeeperError } from "../lib/index.ts";

/** Maximum number of 1xx responses to one request. kube-apiserver sends none. */
const MAX_INFORMATIONAL_ANSWERS = 8;

/** An HTTP request to send. */
export interface Outgoing {
  agent: http.Agent;
  url: URL;
  method: string;
  /** Path and query. */
  path: string;
  headers: Record<string, string>;
  body?: Buffer;
}

/**
 * Sends a request and resolves to the response once its headers arrive. The signal also ends the body. A GET on a
 * kept-alive connection that the server had just closed is sent again on another connection, because the server never
 * processed it.
 */
export function send(outgoing: Outgoing, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const request = start(outgoing);
    const onAbort = () => request.destroy();
    signal.addEventListener("abort", onAbort, { once: true });
    request.once("close", () => signal.removeEventListener("abort", onAbort));
    request.once("response", resolve);
    limitInformational(request);
    request.on("error", (error) => {
      if (signal.aborted) reject(signal.reason);
      else if (metClosedConnection(request, error)) resolve(send(outgoing, signal));
      else reject(error);
    });
    request.end(outgoing.body);
  });
}

function start({ url, ...outgoing }: Outgoing): ClientRequest {
  return (url.protocol === "https:" ? https : http).request({
    agent: outgoing.agent,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port || (url.protocol === "https:" ? 443 : 80),
    method: outgoing.method,
    path: outgoing.path,
    headers: outgoing.headers,
  });
}

// A 1xx response takes 27 bytes and a call into JavaScript. Without a limit, they block the event loop for seconds.
function limitInformational(request: ClientRequest): void {
  let answers = 0;
  request.on("information", () => {
    if (++answers <= MAX_INFORMATIONAL_ANSWERS) return;
    const message = `the server sent too many informational responses: more than ${MAX_INFORMATIONAL_ANSWERS} to one request`;
    request.destroy(new NodekeeperError("unavailable", message));
  });
}

function metClosedConnection(request: ClientRequest, error: Error): boolean {
  const { code } = error as { code?: unknown };
  return request.reusedSocket && request.method === "GET" && (code === "ECONNRESET" || code === "EPIPE");
}

/**
 * Passes on the raw bytes of a body as they arrive. If `onChunk` throws, reading ends. Rejects if the body is
 * truncated.
 * @param turns throttles chunks over turns of the event loop; default: not throttled
 */
export function readChunks(
  response: IncomingMessage,
  signal: AbortSignal,
  onChunk: (chunk: Buffer) => void,
  turns?: LoopTurns,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = 0;
    let isOver = false;
    const fail = (error: unknown) => {
      isOver = true;
      reject(signal.aborted ? signal.reason : error);
      response.destroy();
    };
    response.on("data", (chunk: Buffer) => {
      received += chunk.length;
      try {
        onChunk(chunk);
      } catch (error) {
        fail(error);
      }
      if (!turns || isOver) return;
      response.pause();
      void turns.pass().then(() => response.resume());
    });
    response.once("end", () => {
      isOver = true;
      resolve();
    });
    response.on("error", (cause) => fail(cutShort(received, cause)));
    response.once("close", () => {
      if (!isOver) fail(cutShort(received));
    });
  });
}

/**
 * Returns the whole body as text. Above `longest` bytes, throws `exhausted`, or returns the first part if `cut` is set.
 */
export async function readText(
  response: IncomingMessage,
  signal: AbortSignal,
  { longest, cut }: { longest: number; cut: boolean },
): Promise<{ text: string; bytes: number }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let full: NodekeeperError | undefined;
  try {
    await readChunks(response, signal, (chunk) => {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes <= longest) return;
      full = new ObjectTooLarge({ limit: longest });
      throw full;
    });
  } catch (error) {
    if (error !== full || !cut) throw error;
  }
  return { text: Buffer.concat(chunks).subarray(0, longest).toString("utf8"), bytes };
}

function cutShort(received: number, cause?: unknown): NodekeeperError {
  return new ApiServerUnreachable(
    { problem: `the connection was cut after ${received} bytes of the response` },
    { cause },
  );
}

import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { NodekeeperError } from "../lib/index.ts";

/** Answers with a status below 200 that a server may send for one request. kube-apiserver sends none. */
const MAX_INFORMATIONAL_ANSWERS = 8;

/** One HTTP request, ready to be written. */
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
 * Sends a request and resolves to the answer once its headers arrive. The signal ends the request and, later, the body.
 * A GET that met a kept connection the server had just closed is sent again on another: the server never read it.
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

// Each costs 27 bytes of the peer and a call into JavaScript: without a limit they block the event loop for seconds.
function limitInformational(request: ClientRequest): void {
  let answers = 0;
  request.on("information", () => {
    if (++answers <= MAX_INFORMATIONAL_ANSWERS) return;
    const message = `the server sends too many informational answers: more than ${MAX_INFORMATIONAL_ANSWERS} to one request`;
    request.destroy(new NodekeeperError("unavailable", message));
  });
}

function metClosedConnection(request: ClientRequest, error: Error): boolean {
  const { code } = error as { code?: unknown };
  return request.reusedSocket && request.method === "GET" && (code === "ECONNRESET" || code === "EPIPE");
}

/** Raw bytes of a body as they arrive; `onChunk` may throw to end the reading. Rejects when the body is cut short. */
export function readChunks(
  response: IncomingMessage,
  signal: AbortSignal,
  onChunk: (chunk: Buffer) => void,
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
 * The whole body as text. Beyond `longest` bytes it throws `exhausted`, or with `cut` returns the first part.
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
      full = new NodekeeperError("exhausted", `the answer is longer than ${longest} bytes`, { id: "NK1211" });
      throw full;
    });
  } catch (error) {
    if (error !== full || !cut) throw error;
  }
  return { text: Buffer.concat(chunks).subarray(0, longest).toString("utf8"), bytes };
}

function cutShort(received: number, cause?: unknown): NodekeeperError {
  return new NodekeeperError("unavailable", `the connection was cut after ${received} bytes of the answer`, {
    id: "NK1204",
    cause,
  });
}

import {
  createServer,
  type IncomingMessage,
  request as requestTo,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { KubeObject } from "@nodekeeper/core/kube";

/** A request as it arrives, before the API server has it. */
export interface Arrival {
  /** The product of its User-Agent: "nodekeeper", "kubelet". */
  client: string;
  method: string;
  /** Without the query. */
  path: string;
  /** The name of the pod that the path names. */
  pod: string | undefined;
  kind: RequestKind;
}

/** What a request does to a pod. `read`: a GET of the pod. `other`: any other request, such as a list of pods. */
export type RequestKind = "evict" | "delete" | "status" | "create" | "read" | "other";

/** A request and what the API server answered. Recorded in the order of the answers. */
export interface RecordedRequest extends Arrival {
  /** Wall milliseconds of the answer. */
  at: number;
  /** The UID of the pod; undefined if neither the request nor the answer has it. */
  uid: string | undefined;
  /** The status that the API server answered. */
  status: number;
  /** The pod's phase after a request of kind `status`. */
  phase: string | undefined;
}

/** A request of a client about a pod, whether the API server received it or not. */
export interface SentRequest extends Arrival {
  /** Whether a response was sent back. */
  isAnswered: boolean;
}

/** What happens to a request. */
export type Interception =
  | "pass"
  /** The connection is broken, and the API server never receives the request. */
  | "drop"
  /** It is never answered, and the API server never receives it. */
  | "hold"
  /** The API server handles it; the connection is broken instead of a response. */
  | "loseResponse"
  /** The API server handles it; no response is ever sent. */
  | "holdResponse"
  /** Answered with this status; the API server never receives it. */
  | { status: number; retryAfter?: number };

/**
 * Stands in front of an API server and records every request about pods: which client sent it, what the server answered,
 * and in which order. It knows nothing of the agent: what it recorded is compared with what the agent states.
 */
export class RequestRecorder {
  /** In the order in which the API server answered. */
  readonly requests: RecordedRequest[] = [];
  /** Requests about pods in the order of their arrival. */
  readonly sent: SentRequest[] = [];
  /** Decides about each request; assign to change it. */
  intercept: (arrival: Arrival) => Interception | Promise<Interception> = () => "pass";
  readonly #target: URL;
  readonly #server: Server;

  private constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((request, response) => {
      // A client that is killed breaks its connection at any time.
      this.#handle(request, response).catch(() => response.destroy());
    });
  }

  static async start(target: string): Promise<RequestRecorder> {
    const recorder = new RequestRecorder(target);
    await new Promise<void>((resolve) => recorder.#server.listen(0, "127.0.0.1", resolve));
    return recorder;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => {});
    const arrival = arrivalOf(request);
    const body = await bytesOf(request);
    const sent: SentRequest = { ...arrival, isAnswered: false };
    if (arrival.pod !== undefined) this.sent.push(sent);
    const what = await this.intercept(arrival);
    if (what === "hold") return;
    if (what === "drop") {
      response.destroy();
      return;
    }
    if (typeof what === "object") {
      sent.isAnswered = true;
      answer(response, what);
      return;
    }
    const upstream = await this.#forward(request, body);
    const isWatch = /[?&]watch=(true|1)/.test(request.url ?? "");
    if (isWatch) {
      response.writeHead(upstream.statusCode ?? 500, upstream.headers);
      upstream.on("error", () => response.destroy());
      response.on("close", () => upstream.destroy());
      upstream.pipe(response);
      return;
    }
    const content = await bytesOf(upstream);
    this.#record(arrival, body, upstream.statusCode ?? 0, content);
    if (what === "holdResponse") return;
    if (what === "loseResponse") {
      response.destroy();
      return;
    }
    sent.isAnswered = !response.destroyed;
    response.writeHead(upstream.statusCode ?? 500, upstream.headers);
    response.end(content);
  }

  #forward({ method = "GET", url = "/", headers }: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    const { hostname, port } = this.#target;
    return new Promise((resolve, reject) => {
      const sent = requestTo(
        { hostname, port, method, path: url, headers: { ...headers, host: `${hostname}:${port}` } },
        resolve,
      );
      sent.on("error", reject);
      sent.end(body.length > 0 ? body : undefined);
    });
  }

  #record(arrival: Arrival, body: Buffer, status: number, content: Buffer): void {
    if (arrival.pod === undefined && arrival.kind !== "create") return;
    const sent = jsonOf(body);
    const got = jsonOf(content);
    const preconditions = sent?.deleteOptions?.preconditions ?? sent?.preconditions;
    const isPod = got?.kind === "Pod";
    this.requests.push({
      ...arrival,
      at: Date.now(),
      pod: arrival.pod ?? got?.metadata?.name,
      uid: preconditions?.uid ?? (isPod ? got.metadata.uid : got?.details?.uid),
      status,
      phase: isPod ? got.status?.phase : undefined,
    });
  }
}

function arrivalOf({ method = "GET", url = "/", headers }: IncomingMessage): Arrival {
  const path = url.split("?")[0]!;
  const [, pod, subresource] = /\/pods\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  const client = (headers["user-agent"] ?? "").split("/")[0]!;
  return { client, method, path, pod, kind: kindOf(method, path, pod, subresource) };
}

function kindOf(method: string, path: string, pod?: string, subresource?: string): RequestKind {
  if (pod === undefined) return method === "POST" && path.endsWith("/pods") ? "create" : "other";
  if (method === "GET") return "read";
  if (method === "POST" && subresource === "eviction") return "evict";
  if (method === "DELETE") return "delete";
  return subresource === "status" ? "status" : "other";
}

function answer(response: ServerResponse, { status, retryAfter }: Exclude<Interception, string>): void {
  const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
  response.writeHead(status, { "content-type": "application/json", ...headers });
  const message = `the server answers ${status}`;
  response.end(
    JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: status, message }),
  );
}

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind
function jsonOf(bytes: Buffer): any {
  try {
    return JSON.parse(bytes.toString("utf8")) as Partial<KubeObject>;
  } catch {
    return undefined;
  }
}

async function bytesOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

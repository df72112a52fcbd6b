import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { Status } from "@nodekeeper/core/gen/google/rpc/status.ts";
import { sendRequest } from "@nodekeeper/core/kube";
import { messageOf } from "@nodekeeper/core/lib";
import { type Access, type AccessFiles, readAccess } from "./access-files.ts";
import { type Delivery, type OtlpRequest, shortened, type Transport } from "./delivery.ts";
import { acceptedBy } from "./responses.ts";

export interface TransportOptions extends AccessFiles {
  /** Of the collector, without the path of the signal. */
  endpoint: string;
  compression: "gzip" | "none";
  /** The value of User-Agent. */
  userAgent: string;
}

const MOST_ANSWER_BYTES = 64 * 1024;
const IDLE_MS = 60_000;
const PROTOBUF = "application/x-protobuf";
// Retryable status codes of OTLP (https://opentelemetry.io/docs/specs/otlp/#otlphttp-response), and 408.
const unavailable: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);
// The collector can't process the records, and states the reason in protobuf. A response that is not protobuf may come
// from a server that is not a collector.
const refused: ReadonlySet<number> = new Set([400, 422]);
const TOO_LARGE = 413;
const NOT_FOUND = 404;

/** OTLP over HTTP, with binary protobuf. */
export class HttpTransport implements Transport {
  readonly #options: TransportOptions;
  readonly #url: URL;
  #agent: http.Agent | undefined;
  #ca: string | undefined;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#url = new URL(options.endpoint);
  }

  async send(request: OtlpRequest, signal: AbortSignal): Promise<Delivery> {
    try {
      const access = await readAccess(this.#options);
      const response = await this.#post(request, access, signal);
      return deliveryOf(response, await bytesOf(response), request.signal);
    } catch (error) {
      signal.throwIfAborted();
      return { kind: "unavailable", message: shortened(messageOf(error)), retryAfterMs: 0 };
    }
  }

  async #post({ signal: what, body }: OtlpRequest, access: Access, signal: AbortSignal) {
    const { compression, userAgent } = this.#options;
    const isCompressed = compression === "gzip";
    const sent = isCompressed ? await promisify(gzip)(body) : Buffer.from(body);
    const headers = {
      "user-agent": userAgent,
      ...access.headers,
      "content-type": PROTOBUF,
      "content-length": String(sent.length),
      ...(isCompressed ? { "content-encoding": "gzip" } : {}),
    };
    const path = `${this.#url.pathname.replace(/\/+$/, "")}/v1/${what}`;
    const agent = this.#agentFor(access.ca);
    return await sendRequest({ agent, url: this.#url, method: "POST", path, headers, body: sent }, signal);
  }

  #agentFor(ca: string | undefined): http.Agent {
    if (this.#agent && ca === this.#ca) return this.#agent;
    this.#agent?.destroy();
    this.#ca = ca;
    const common = { keepAlive: true, timeout: IDLE_MS };
    this.#agent =
      this.#url.protocol === "https:"
        ? new https.Agent({ ...common, ...(ca === undefined ? {} : { ca }) })
        : new http.Agent(common);
    return this.#agent;
  }

  [Symbol.dispose](): void {
    this.#agent?.destroy();
  }
}

async function bytesOf(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MOST_ANSWER_BYTES) break;
  }
  return Buffer.concat(chunks);
}

function deliveryOf(response: IncomingMessage, body: Buffer, what: OtlpRequest["signal"]): Delivery {
  const { statusCode = 0, headers } = response;
  const isProtobuf = headers["content-type"]?.startsWith(PROTOBUF) ?? false;
  if (statusCode >= 200 && statusCode < 300)
    return isProtobuf ? acceptedBy(body, what) : { kind: "accepted", rejected: 0, message: "" };
  const text = isProtobuf ? messageIn(body) : body.toString("utf8");
  const message = shortened(`HTTP ${statusCode}: ${text}`);
  if (unavailable.has(statusCode))
    return { kind: "unavailable", message, retryAfterMs: retryAfterOf(headers["retry-after"]) };
  if (statusCode === TOO_LARGE) return { kind: "tooLarge", message };
  if (statusCode === NOT_FOUND) return { kind: "unsupported", message };
  return { kind: isProtobuf && refused.has(statusCode) ? "refused" : "denied", message };
}

function messageIn(body: Buffer): string {
  try {
    return Status.decode(body).message;
  } catch {
    return "";
  }
}

// A number of seconds, or a date.
function retryAfterOf(text: string | undefined): number {
  if (text === undefined) return 0;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : 0;
}

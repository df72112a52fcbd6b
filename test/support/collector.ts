import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import {
  ExportLogsServiceRequest,
  ExportLogsServiceResponse,
  type LogRecord,
} from "@nodekeeper/core/gen/opentelemetry/v1/logs.ts";
import { ExportTraceServiceRequest, type Span } from "@nodekeeper/core/gen/opentelemetry/v1/trace.ts";

/** An answer of the collector. Default: 200 without rejected records. */
export interface CollectorAnswer {
  status?: number;
  headers?: Record<string, string>;
  /** Number of rejected records. */
  rejected?: number;
  message?: string;
  /** Waits before the answer. */
  after?: Promise<unknown>;
  /** Keeps the records, and cuts the connection in place of an answer. */
  isCut?: boolean;
}

/** A request that the collector received. */
export interface CollectorRequest {
  path: string;
  headers: IncomingMessage["headers"];
  logs: LogRecord[];
  spans: Span[];
}

/** A log record as stores show it. */
export interface StoredLog {
  id: string;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every event
  body: any;
  attributes: Record<string, string | number>;
  resource: Record<string, string | number>;
  traceId: string;
}

/** An OpenTelemetry collector over HTTP. */
export class Collector {
  /** What it accepted, in order, with duplicates. */
  readonly logs: StoredLog[] = [];
  readonly spans: Span[] = [];
  readonly requests: CollectorRequest[] = [];
  /** Decides over requests; assign to change it. */
  answer: (request: CollectorRequest) => CollectorAnswer = () => ({});
  #server: Server | undefined;
  #port = 0;

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens, on the same port if it listened before. */
  async start(): Promise<void> {
    const server = createServer((request, response) => {
      void this.#serve(request, response);
    });
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  /** Logs by their IDs: what is left after deduplication. Throws if two with the same ID differ. */
  distinct(): StoredLog[] {
    const byId = new Map<string, StoredLog>();
    for (const log of this.logs) if (!byId.has(log.id)) byId.set(log.id, log);
    return [...byId.values()];
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const sent = Buffer.concat(chunks);
    const body = incoming.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
    const isLogs = incoming.url?.endsWith("/v1/logs") ?? false;
    const logs = isLogs ? ExportLogsServiceRequest.decode(body).resourceLogs : [];
    const traces = isLogs ? [] : ExportTraceServiceRequest.decode(body).resourceSpans;
    const request: CollectorRequest = {
      path: incoming.url ?? "",
      headers: incoming.headers,
      logs: logs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords)),
      spans: traces.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
    };
    this.requests.push(request);
    const { status = 200, headers = {}, rejected = 0, message = "", after, isCut } = this.answer(request);
    await after;
    if (status === 200) {
      this.logs.push(...storedLogs(logs).slice(rejected));
      this.spans.push(...request.spans);
    }
    if (isCut) {
      incoming.socket.destroy();
      return;
    }
    response.writeHead(status, { "content-type": "application/x-protobuf", ...headers });
    const partialSuccess = { rejectedLogRecords: BigInt(rejected), errorMessage: message };
    response.end(
      status === 200 && isLogs ? ExportLogsServiceResponse.encode({ partialSuccess }).finish() : undefined,
    );
  }
}

/** Returns the records of a request as stores show them. */
export function storedLogs(logs: ExportLogsServiceRequest["resourceLogs"]): StoredLog[] {
  return logs.flatMap(({ resource, scopeLogs }) => {
    const shared = Object.fromEntries(attributesOf(resource?.attributes ?? []));
    return scopeLogs.flatMap(({ logRecords }) => logRecords.map((log) => storedOf(log, shared)));
  });
}

function storedOf(log: LogRecord, resource: StoredLog["resource"]): StoredLog {
  const attributes = Object.fromEntries(attributesOf(log.attributes));
  return {
    id: String(attributes["nodekeeper.record.id"]),
    event: log.eventName,
    body: JSON.parse(log.body?.stringValue ?? "null"),
    attributes,
    resource,
    traceId: Buffer.from(log.traceId).toString("hex"),
  };
}

function attributesOf(attributes: LogRecord["attributes"]): [string, string | number][] {
  return attributes.map(({ key, value }) => [key, value?.stringValue ?? Number(value?.intValue)]);
}

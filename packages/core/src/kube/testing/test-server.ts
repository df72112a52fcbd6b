import http, { type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { type Clock, Registry, silentLogger, systemClock } from "../../lib/index.ts";
import type { ClusterAccess } from "../access.ts";
import { createKubeClient, type KubeClientOptions } from "../client.ts";
import { nodes, podResource } from "../core-group.ts";
import { createKubeMetrics } from "../metrics.ts";
import type { KubeApiClient } from "../types.ts";

/** A received request and its pending response. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  body: string;
}

export type Handler = (exchange: Exchange) => void;

/** A real HTTP server whose responses are written by the test. */
export interface TestServer extends AsyncDisposable {
  url: URL;
  exchanges: Exchange[];
  handler: Handler;
  /** Number of accepted connections. */
  connections: number;
}

export async function startServer(handler: Handler, tls?: https.ServerOptions): Promise<TestServer> {
  const listener: RequestListener = async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const exchange = { request, response, url: new URL(request.url ?? "", "http://server"), body };
    server.exchanges.push(exchange);
    server.handler(exchange);
  };
  const listening = tls ? https.createServer(tls, listener) : http.createServer(listener);
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const { port } = listening.address() as AddressInfo;
  const server: TestServer = {
    url: new URL(`${tls ? "https" : "http"}://127.0.0.1:${port}`),
    exchanges: [],
    handler,
    connections: 0,
    async [Symbol.asyncDispose]() {
      listening.closeAllConnections();
      await new Promise((resolve) => listening.close(resolve));
    },
  };
  listening.on("connection", () => {
    server.connections++;
  });
  return server;
}

export function sendJson(response: ServerResponse, value: unknown, status = 200, headers = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

export function sendStatus(response: ServerResponse, code: number, message: string, headers = {}): void {
  sendJson(response, { kind: "Status", apiVersion: "v1", status: "Failure", code, message }, code, headers);
}

export { nodes, podResource as pods };

export interface TestClient extends Disposable {
  client: KubeApiClient;
  registry: Registry;
  metrics: ReturnType<typeof createKubeMetrics>;
}

export function clientOf(
  server: { url: URL },
  options: Partial<Omit<KubeClientOptions, "access">> & { access?: Partial<ClusterAccess> } = {},
): TestClient {
  const registry = new Registry();
  const metrics = createKubeMetrics(registry);
  const clock: Clock = options.clock ?? systemClock;
  const client = createKubeClient({
    log: silentLogger,
    version: "1.2.3",
    metrics,
    ...options,
    clock,
    access: { source: "test", server: server.url, ...options.access },
  });
  return { client, registry, metrics, [Symbol.dispose]: () => client.close() };
}

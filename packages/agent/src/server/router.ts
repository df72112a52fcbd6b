import type { IncomingHttpHeaders } from "node:http";
import { setImmediate } from "node:timers/promises";
import { STREAM_PATH, streamSummary } from "@nodekeeper/api/http";
import {
  type Clock,
  type HealthCheck,
  NodekeeperError,
  type Registry,
  Semaphore,
} from "@nodekeeper/core/lib";
import { API_ROOT, indexRoutes, type JsonRoute, routeReply } from "./api.ts";
import { type HealthEndpoint, healthEndpoints, healthReply, singleHealthReply } from "./health.ts";
import { MetricsPage } from "./metrics-page.ts";
import { PAGE_ROOT, pageReply, prefersPage, type ReadPageFile } from "./page.ts";
import { errorReply, jsonReply, type Reply, textReply } from "./reply.ts";
import type { OpenStream, Streams } from "./stream/streams.ts";

/** What the servers of one agent serve, besides the metrics of a registry. */
export interface Served {
  checks: readonly HealthCheck[];
  routes: readonly JsonRoute[];
  /** Streams of changes, at /api/v1/stream. Default: none. */
  streams?: Streams;
  /** Reads the page's files. Default: no page, and browsers get the same responses as other clients. */
  page?: ReadPageFile;
}

export interface RouterOptions {
  served: Served;
  registry: Registry;
  clock: Clock;
  /** Whether health responses omit why a check fails, for unauthenticated callers. */
  withholdReasons: boolean;
}

/** Whether a path is served without authentication even beyond loopback: health, for the kubelet's probes. */
export function isPublic(path: string): boolean {
  const [, first] = path.split("/");
  return healthEndpoints.some((name) => name === first);
}

/** A response, and the `handler` label of its metrics, which is never the client's path. */
export interface Routed {
  handler: string;
  reply: Reply;
  /** Sent instead of the reply's body. The caller closes it. */
  stream?: OpenStream;
}

// Below the connection limit, so that a connection remains for the kubelet's probes.
const HANDLERS_AT_ONCE = 2;
const MAX_WAITING_REQUESTS = 30;
const RETRY_AFTER_MS = 1_000;

/** Routes GET requests. */
export class Router {
  readonly #options: RouterOptions;
  readonly #served: Served;
  readonly #routes: ReadonlyMap<string, JsonRoute>;
  readonly #metrics: MetricsPage;
  readonly #handlers = new Semaphore({ permits: HANDLERS_AT_ONCE, maxWaiting: MAX_WAITING_REQUESTS });

  /** Throws `invalid` if two routes have the same path or two checks the same name. */
  constructor(options: RouterOptions) {
    const { served, registry, clock } = options;
    this.#options = options;
    this.#served = served;
    this.#routes = indexRoutes(served.routes);
    this.#metrics = new MetricsPage(registry, clock);
    const names = served.checks.map((check) => check.name);
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw new NodekeeperError("invalid", `two health checks have the name ${twice}`);
  }

  /**
   * @param headers `accept` selects the format of metrics, and the page or the list at "/"; `last-event-id` is sent by
   * a browser to resume a stream
   */
  async answer(
    path: string,
    query: URLSearchParams,
    signal: AbortSignal,
    headers: IncomingHttpHeaders = {},
  ): Promise<Routed> {
    if (path === "/") return { handler: "/", reply: await this.#start(headers.accept) };
    if (path.startsWith(PAGE_ROOT) && this.#served.page) {
      const name = path.slice(PAGE_ROOT.length);
      return { handler: PAGE_ROOT, reply: await pageReply(this.#served.page, name) };
    }
    if (path === "/metrics")
      return { handler: path, reply: await this.#metrics.reply(headers.accept, signal) };
    const health = this.#health(path, query);
    if (health) return health;
    if (path === API_ROOT || path === `${API_ROOT}/`) {
      return { handler: API_ROOT, reply: jsonReply(200, { routes: this.#listed() }) };
    }
    if (path === `${API_ROOT}/${STREAM_PATH}` && this.#served.streams)
      return this.#stream(this.#served.streams, query, headers["last-event-id"]?.toString());
    const route = path.startsWith(`${API_ROOT}/`)
      ? this.#routes.get(path.slice(API_ROOT.length + 1))
      : undefined;
    if (route)
      return { handler: `${API_ROOT}/${route.path}`, reply: await this.#route(route, query, signal) };
    const shown = path.slice(0, 200);
    if (!path.startsWith("/api/"))
      return { handler: "other", reply: textReply(404, `nothing at ${shown}; see /`) };
    return {
      handler: "other",
      reply: errorReply(new NodekeeperError("notFound", `no route ${shown}; GET ${API_ROOT} lists them`)),
    };
  }

  // Health and metrics bypass this: they respond while requests wait for a handler.
  async #route(route: JsonRoute, query: URLSearchParams, signal: AbortSignal): Promise<Reply> {
    try {
      return await this.#handlers.run(signal, async () => {
        // Yields to the event loop between handlers, so that no number of requests blocks the agent's other work.
        await setImmediate();
        return await routeReply(route, query, this.#options.clock, signal);
      });
    } catch (error) {
      return errorReply(error, RETRY_AFTER_MS);
    }
  }

  #stream(streams: Streams, query: URLSearchParams, lastEventId: string | undefined): Routed {
    const handler = `${API_ROOT}/${STREAM_PATH}`;
    try {
      const stream = streams.open(query, lastEventId);
      return { handler, reply: { status: 200, contentType: "text/event-stream", body: "" }, stream };
    } catch (error) {
      return { handler, reply: errorReply(error) };
    }
  }

  #listed(): { path: string; summary: string }[] {
    const { routes, streams } = this.#served;
    const listed = [...routes, ...(streams ? [{ path: STREAM_PATH, summary: streamSummary }] : [])];
    return listed.map(({ path, summary }) => ({ path: `${API_ROOT}/${path}`, summary }));
  }

  #health(path: string, query: URLSearchParams): Routed | undefined {
    const [, first = "", ...rest] = path.split("/");
    const endpoint = healthEndpoints.find((name): name is HealthEndpoint => name === first);
    if (!endpoint) return undefined;
    const name = rest.join("/");
    const { withholdReasons } = this.#options;
    const asked = { checks: this.#served.checks, withholdReasons, endpoint };
    const reply = name ? singleHealthReply(asked, name) : healthReply(asked, query);
    return { handler: `/${endpoint}`, reply };
  }

  // When run from source, the page may not be built yet.
  async #start(accept: string | undefined): Promise<Reply> {
    if (!this.#served.page || !prefersPage(accept)) return this.#index();
    const reply = await pageReply(this.#served.page, "index.html");
    return reply.status === 200 ? reply : this.#index();
  }

  #index(): Reply {
    const { checks } = this.#served;
    const lines = [
      "Nodekeeper",
      "",
      ...(this.#served.page ? ["/   the page, for browsers"] : []),
      "/livez /readyz /healthz   health; ?verbose lists the checks, ?exclude=<name> skips one",
      ...checks.map((check) => `  /readyz/${check.name}`),
      "/metrics   metrics for Prometheus, as OpenMetrics on request",
      `${API_ROOT}   the JSON API`,
      ...this.#listed().map((route) => `  ${route.path}   ${route.summary}`),
    ];
    return textReply(200, lines.join("\n"));
  }
}

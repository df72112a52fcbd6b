import { type Clock, type HealthCheck, NodekeeperError, type Registry, withDeadline } from "../lib/index.ts";
import { API_ROOT, HANDLER_DEADLINE_MS, indexRoutes, type JsonRoute, routeList, routeReply } from "./api.ts";
import { type HealthEndpoint, healthEndpoints, healthReply, singleHealthReply } from "./health.ts";
import { errorReply, type Reply, textReply } from "./reply.ts";

export interface RouterOptions {
  checks: readonly HealthCheck[];
  registry: Registry;
  routes: readonly JsonRoute[];
  clock: Clock;
}

/** An answer, and under which name it is counted: a name of ours, never the client's path. */
export interface Routed {
  handler: string;
  reply: Reply;
}

/** Finds what a GET request asks for, and answers it. */
export class Router {
  readonly #options: RouterOptions;
  readonly #routes: ReadonlyMap<string, JsonRoute>;

  /** Throws `invalid` for routes or checks that stand in each other's way. */
  constructor(options: RouterOptions) {
    this.#options = options;
    this.#routes = indexRoutes(options.routes);
    const names = options.checks.map((check) => check.name);
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw new NodekeeperError("invalid", `health check ${twice} is there twice`);
  }

  async answer(path: string, query: URLSearchParams, signal: AbortSignal): Promise<Routed> {
    if (path === "/") return { handler: "/", reply: this.#index() };
    if (path === "/metrics") return { handler: path, reply: await this.#metrics(signal) };
    const health = this.#health(path, query);
    if (health) return health;
    if (path === API_ROOT || path === `${API_ROOT}/`) {
      return { handler: API_ROOT, reply: routeList(this.#options.routes) };
    }
    const route = path.startsWith(`${API_ROOT}/`)
      ? this.#routes.get(path.slice(API_ROOT.length + 1))
      : undefined;
    if (route) {
      const reply = await routeReply(route, query, this.#options.clock, signal);
      return { handler: `${API_ROOT}/${route.path}`, reply };
    }
    const shown = path.slice(0, 200);
    if (!path.startsWith("/api/"))
      return { handler: "other", reply: textReply(404, `nothing at ${shown}; see /`) };
    return {
      handler: "other",
      reply: errorReply("notFound", `no route ${shown}; GET ${API_ROOT} lists them`),
    };
  }

  #health(path: string, query: URLSearchParams): Routed | undefined {
    const [, first = "", ...rest] = path.split("/");
    const endpoint = healthEndpoints.find((name): name is HealthEndpoint => name === first);
    if (!endpoint) return undefined;
    const { checks } = this.#options;
    const name = rest.join("/");
    const reply = name ? singleHealthReply(checks, endpoint, name) : healthReply(checks, endpoint, query);
    return { handler: `/${endpoint}`, reply };
  }

  async #metrics(signal: AbortSignal): Promise<Reply> {
    const { registry, clock } = this.#options;
    const body = await withDeadline(clock, HANDLER_DEADLINE_MS, "metrics", signal, () => registry.metrics());
    return { status: 200, contentType: registry.contentType, body };
  }

  #index(): Reply {
    const { checks, routes } = this.#options;
    const lines = [
      "Nodekeeper",
      "",
      "/livez /readyz /healthz   health; ?verbose names the checks, ?exclude=<name> leaves one out",
      ...checks.map((check) => `  /readyz/${check.name}`),
      "/metrics   Prometheus metrics",
      `${API_ROOT}   the JSON API`,
      ...routes.map((route) => `  ${API_ROOT}/${route.path}   ${route.summary}`),
    ];
    return textReply(200, lines.join("\n"));
  }
}

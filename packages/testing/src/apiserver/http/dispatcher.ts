import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { abortable, codeOf, messageOf } from "@nodekeeper/core/lib";
import type { DevApiServerOptions, Fault, RequestInfo } from "../options.ts";
import { badRequest, StatusError } from "../status.ts";
import { reviewAccess } from "./access-review.ts";
import { Call } from "./call.ts";
import { answerDocument } from "./documents.ts";
import { parseResourcePath, type ResourcePath } from "./path.ts";
import { checkTarget, handleResource, type ResourceServices } from "./resource-handler.ts";

// Paths without information about the cluster, which the API server also serves without authentication.
const OPEN_PATHS = new Set(["/healthz", "/livez", "/readyz", "/version"]);

/** Applies faults and authentication, reads the body and routes the request. All failures become a Status. */
export class Dispatcher {
  readonly #options: DevApiServerOptions;
  readonly #services: ResourceServices;

  constructor(options: DevApiServerOptions, services: ResourceServices) {
    this.#options = options;
    this.#services = services;
  }

  async handle(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    let call: Call | undefined;
    try {
      call = new Call(request, response);
      await this.#answer(call, signal);
    } catch (error) {
      if (response.destroyed || codeOf(error) === "stopped") return;
      this.#answerFailure(call, response, error);
    }
  }

  async #answer(call: Call, signal: AbortSignal): Promise<void> {
    const info = infoOf(call);
    checkHost(call);
    const fault = this.#options.faults?.(info);
    if (fault && !(await this.#inflict(fault, call, signal))) return;
    this.#authenticate(call);
    if (call.method !== "GET" && call.method !== "HEAD") await abortable(call.readBody(), signal);
    const received = { ...info, body: call.body };
    this.#options.onRequest?.(received);
    const refusal = this.#options.admit?.(received);
    if (refusal && !(await this.#inflict(refusal, call, signal))) return;
    this.#route(call, info);
  }

  #route(call: Call, { resource }: RequestInfo): void {
    const { catalogue } = this.#services.context;
    const served = resource && catalogue.find(resource.group, resource.version, resource.plural);
    if (served) {
      const { namespace, name, subresource } = resource;
      handleResource(this.#services, call, checkTarget({ ...served, namespace, name, subresource }));
    } else if (!resource) answerDocument(call, catalogue);
    else if (isAccessReview(resource)) reviewAccess(call, this.#options.rules);
    else notServed(call);
  }

  /** @returns whether to handle the request */
  async #inflict(fault: Fault, call: Call, signal: AbortSignal): Promise<boolean> {
    if (fault === "hang") return false;
    if (fault === "cut") {
      call.response.destroy();
      return false;
    }
    if ("delayMs" in fault) {
      await this.#options.clock.sleep(fault.delayMs, signal);
      return true;
    }
    const { status, headers = {}, body = "" } = fault;
    const text = typeof body === "string" ? body : JSON.stringify(body);
    call.send(status, text, typeof body === "string" ? "text/plain" : "application/json", headers);
    return false;
  }

  #authenticate(call: Call): void {
    const { token } = this.#options;
    if (token === undefined || OPEN_PATHS.has(call.pathname)) return;
    const given = Buffer.from(call.request.headers.authorization ?? "");
    const wanted = Buffer.from(`Bearer ${token}`);
    if (given.length === wanted.length && timingSafeEqual(given, wanted)) return;
    throw new StatusError(401, "Unauthorized", "Unauthorized");
  }

  #answerFailure(call: Call | undefined, response: ServerResponse, error: unknown): void {
    if (!(error instanceof StatusError)) {
      const { method, url } = { method: call?.method, url: call?.pathname };
      this.#options.log.error(
        { err: error, method, path: url },
        "request failed inside the development API server",
      );
    }
    const known =
      error instanceof StatusError
        ? error
        : new StatusError(500, "InternalError", `Internal error occurred: ${messageOf(error)}`);
    const { status } = known;
    const retryAfter = status.details?.retryAfterSeconds;
    const headers: Record<string, string> =
      retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
    if (call) call.send(status.code, JSON.stringify(status), "application/json", headers);
    else response.writeHead(400).end();
  }
}

function isAccessReview({ group, plural }: ResourcePath): boolean {
  return group === "authorization.k8s.io" && plural === "selfsubjectaccessreviews";
}

function infoOf({ method, pathname, query, request }: Call): RequestInfo {
  return { method, path: pathname, query, headers: request.headers, resource: parseResourcePath(pathname) };
}

// Prevents DNS rebinding, by which a web page could reach a loopback server under another host name.
function checkHost({ request }: Call): void {
  const host = (request.headers.host ?? "").replace(/:\d+$/, "");
  if (host === "" || host === "localhost" || host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(host)) return;
  throw badRequest(`this development server answers on loopback names only, not ${JSON.stringify(host)}`);
}

/** Responds to a path that is not served. */
function notServed(call: Call): void {
  call.send(404, "404 page not found\n", "text/plain; charset=utf-8");
}

import type { IncomingMessage } from "node:http";
import { ApiServerUnreachable, RequestsThrottled } from "@nodekeeper/api/errors";
import {
  type Clock,
  codeOf,
  type Logger,
  LoopTurns,
  NodekeeperError,
  stopped,
  TokenBucket,
  withDeadline,
} from "../lib/index.ts";
import type { ClusterAccess } from "./access.ts";
import { Agents, type Purpose } from "./agents.ts";
import { type CredentialSnapshot, Credentials } from "./credentials.ts";
import { readChunks, readText, send } from "./exchange.ts";
import { errorOfAnswer, errorOfSocket, isTrustProblem, notJson } from "./http-errors.ts";
import type { KubeMetrics } from "./metrics.ts";
import { type Query, withQuery } from "./paths.ts";
import { redactSecrets } from "./redact.ts";
import type { CallOptions } from "./types.ts";

export interface ConnectionOptions {
  access: ClusterAccess;
  clock: Clock;
  log: Logger;
  metrics: KubeMetrics;
  /** Version of the agent, for the User-Agent header. */
  version: string;
  /** Default deadline of calls, in milliseconds. Default 10,000. */
  deadlineMs?: number;
  /** Sustained requests per second. Default 20. */
  qps?: number;
  /** Burst of requests above `qps`. Default 40. */
  burst?: number;
}

/** A request to the API server. */
export interface ApiRequest {
  method: string;
  path: string;
  query?: Query;
  /** Sent as JSON. */
  body?: unknown;
  contentType?: string;
  /** Labels of the request's metrics. */
  verb: string;
  resource: string;
  /** Maximum size of the response, in bytes, if lower than 32 MiB. */
  longest?: number;
  /** A secret in the body. Errors of the request never quote it. */
  secret?: string;
}

/** A parsed response and its size on the wire. */
export interface ApiAnswer {
  value: unknown;
  bytes: number;
}

/** Callbacks of an open stream. */
export interface StreamListener {
  onOpen(): void;
  onChunk(chunk: Buffer): void;
}

/** How long an attempt may take. */
interface Limits {
  signal: AbortSignal;
  /** Milliseconds, which the wait for the rate limit must not exceed. */
  deadlineMs: number;
}

const MAX_OUTSTANDING_CALLS = 1024;
/** Connections for calls. */
const MAX_SOCKETS = 8;
/** Concurrent watches. Each has a separate connection. */
const MAX_WATCHES = 32;
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;

/** Connections to one API server, with deadlines, limits, credentials, and errors of the catalog. */
export class Connection {
  readonly #options: Required<ConnectionOptions>;
  readonly #credentials: Credentials;
  readonly #agents: Agents;
  readonly #limiter: TokenBucket;
  readonly #closing = new AbortController();
  /** Shared by all watches, so that a server that sends without pause does not block other work. */
  readonly #turns: LoopTurns;
  #calls = 0;
  #watches = 0;

  constructor(options: ConnectionOptions) {
    this.#options = { deadlineMs: 10_000, qps: 20, burst: 40, ...options };
    const { access, clock, log, qps, burst } = this.#options;
    this.#credentials = new Credentials(access, clock, log);
    this.#turns = new LoopTurns(clock);
    this.#agents = new Agents(access, { calls: MAX_SOCKETS, watches: MAX_WATCHES });
    this.#limiter = new TokenBucket(clock, { perSecond: qps, burst });
  }

  /** Sends a request and reads the response within the deadline. Throws as documented for KubeClient. */
  async call(request: ApiRequest, options: CallOptions = {}): Promise<ApiAnswer> {
    if (this.#calls >= MAX_OUTSTANDING_CALLS) {
      throw new RequestsThrottled({
        request: nameOf(request),
        problem: `${this.#calls} calls are in progress already`,
      });
    }
    this.#calls++;
    try {
      return await this.#within(request, options, async (limits) => {
        const response = await this.#authorized(request, "calls", limits);
        return await this.#readJson(request, response, limits.signal, options.parse ?? JSON.parse);
      });
    } catch (error) {
      if (codeOf(error) === "deadline") this.#agents.retireIdle();
      throw error;
    } finally {
      this.#calls--;
    }
  }

  /**
   * Opens a streamed response. The deadline applies until its headers arrive. Resolves when the server ends the stream.
   * Rejects as `call` does, or with the error that `onChunk` threw.
   */
  async stream(
    request: ApiRequest,
    listener: StreamListener,
    options: CallOptions & { signal: AbortSignal },
  ) {
    if (this.#watches >= MAX_WATCHES) {
      throw new RequestsThrottled({
        request: nameOf(request),
        problem: `${this.#watches} watches are open already`,
      });
    }
    this.#watches++;
    const ending = new AbortController();
    const signal = AbortSignal.any([options.signal, this.#closing.signal, ending.signal]);
    try {
      const response = await this.#within(request, options, ({ signal: opening, deadlineMs }) => {
        // The deadline applies only to opening the stream. The body is read until `signal` aborts.
        opening.addEventListener("abort", () => ending.abort(opening.reason), { once: true });
        return this.#authorized(request, "watches", { signal, deadlineMs });
      });
      listener.onOpen();
      await readChunks(response, signal, listener.onChunk, this.#turns);
    } catch (error) {
      throw this.#explain(request, error, signal);
    } finally {
      ending.abort(stopped("watch ended"));
      this.#watches--;
    }
  }

  /** Closes all connections. Calls in progress fail with `stopped`. */
  close(): void {
    this.#closing.abort(stopped("the API server client was closed"));
    this.#agents.destroy();
  }

  async #within<T>(
    request: ApiRequest,
    options: CallOptions,
    work: (limits: Limits) => Promise<T>,
  ): Promise<T> {
    const { deadlineMs = this.#options.deadlineMs } = options;
    const parents = [options.signal, this.#closing.signal];
    const timed = { ms: deadlineMs, name: nameOf(request), id: ApiServerUnreachable.id };
    return await withDeadline(this.#options.clock, timed, parents, async (signal) => {
      try {
        return await work({ signal, deadlineMs });
      } catch (error) {
        throw this.#explain(request, error, signal);
      }
    });
  }

  // On a 401, reads the credentials again and retries once if they changed.
  async #authorized(request: ApiRequest, purpose: Purpose, limits: Limits) {
    const credentials = await this.#credentials.current();
    try {
      return await this.#successful(request, purpose, credentials, limits);
    } catch (error) {
      if (codeOf(error) !== "unauthenticated") throw error;
      const renewed = await this.#credentials.refresh();
      if (renewed.token === credentials.token && renewed.tlsGeneration === credentials.tlsGeneration)
        throw error;
      return await this.#successful(request, purpose, renewed, limits);
    }
  }

  async #successful(
    request: ApiRequest,
    purpose: Purpose,
    credentials: CredentialSnapshot,
    { signal, deadlineMs }: Limits,
  ): Promise<IncomingMessage> {
    const { clock, metrics } = this.#options;
    const waitedMs = await this.#limiter.take(deadlineMs, signal);
    metrics.rateLimiterWait.inc(waitedMs / 1000);
    const { verb, resource } = request;
    const startedAt = clock.monotonic();
    let code = "";
    try {
      const response = await send(this.#outgoing(request, purpose, credentials), signal);
      const status = response.statusCode ?? 0;
      code = String(status);
      if (status >= 200 && status < 300) return response;
      const { text } = await readText(response, signal, { longest: MAX_ERROR_BYTES, cut: true });
      const body = redactSecrets(text, credentials.token, request.secret);
      throw errorOfAnswer(nameOf(request), { status, headers: response.headers, body }, clock.now());
    } catch (error) {
      if (isTrustProblem(error)) this.#credentials.suspect();
      const explained = this.#explain(request, error, signal);
      code ||= codeOf(explained);
      throw explained;
    } finally {
      metrics.requests.inc({ verb, resource, code });
      metrics.requestDuration.observe({ verb }, (clock.monotonic() - startedAt) / 1000);
    }
  }

  #outgoing(request: ApiRequest, purpose: Purpose, credentials: CredentialSnapshot) {
    const { server } = this.#options.access;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    const headers: Record<string, string> = {
      accept: "application/json",
      "user-agent": `nodekeeper/${this.#options.version}`,
    };
    if (credentials.token) headers.authorization = `Bearer ${credentials.token}`;
    if (body) {
      headers["content-type"] = request.contentType ?? "application/json";
      headers["content-length"] = String(body.length);
    }
    return {
      agent: this.#agents.for(purpose, credentials),
      url: server,
      method: request.method,
      // Behind a gateway, the server's URL may have a path prefix.
      path: server.pathname.replace(/\/+$/, "") + withQuery(request.path, request.query),
      headers,
      ...(body ? { body } : {}),
    };
  }

  async #readJson(
    request: ApiRequest,
    response: IncomingMessage,
    signal: AbortSignal,
    parse: (text: string) => unknown,
  ): Promise<ApiAnswer> {
    const longest = Math.min(request.longest ?? Number.POSITIVE_INFINITY, MAX_RESPONSE_BYTES);
    const { text, bytes } = await readText(response, signal, { longest, cut: false });
    try {
      return { value: parse(text), bytes };
    } catch {
      // Omits the cause, which quotes the body.
      const { token } = await this.#credentials.current();
      const body = redactSecrets(text.slice(0, MAX_ERROR_BYTES), token, request.secret);
      throw notJson(nameOf(request), { status: response.statusCode ?? 0, headers: response.headers, body });
    }
  }

  // Errors name their request. The reason of an abort is unchanged.
  #explain(request: ApiRequest, error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted && error === signal.reason) return error;
    const what = nameOf(request);
    if (!(error instanceof NodekeeperError)) return errorOfSocket(what, this.#options.access.source, error);
    if (error.constructor !== NodekeeperError || error.message.startsWith(what)) return error;
    const { id, cause, retryAfterMs } = error;
    const details = { id, cause, retryAfterMs };
    return new NodekeeperError(error.code, `${what}: ${error.message}`, details);
  }
}

/** Returns the method and path, the name of a request in messages. */
export function nameOf(request: Pick<ApiRequest, "method" | "path">): string {
  return `${request.method} ${request.path}`;
}

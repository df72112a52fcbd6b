import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { StatusServerWithoutTls } from "@nodekeeper/api/errors";
import { STREAM_PATH } from "@nodekeeper/api/http";
import {
  type Clock,
  childScope,
  isLoopback,
  type Logger,
  LoopTurns,
  NodekeeperError,
  PacedSocket,
  type Registry,
  type Runnable,
  Semaphore,
  stopped,
} from "@nodekeeper/core/lib";
import { formatAddress, type ListenAddress, parseListenAddress } from "./address.ts";
import { API_ROOT } from "./api.ts";
import { ConnectionLimit } from "./connection-limit.ts";
import type { AccessCheck } from "./delegated-access.ts";
import { isCrossSite, isHostAllowed } from "./host-guard.ts";
import { failureOrAbort, listen } from "./listen.ts";
import { createServerMetrics, type ServerMetrics } from "./metrics.ts";
import { paceConnections } from "./pace-connections.ts";
import { errorReply, type Reply, withChallenge } from "./reply.ts";
import { isPublic, type Routed, Router, type Served } from "./router.ts";
import { commonHeaders, sendReply } from "./send-reply.ts";
import { sendStream } from "./send-stream.ts";
import type { CertificatePair, ServingCertificate } from "./serving-certificate.ts";
import { readForm } from "./sign-in/read-form.ts";
import { SignIn } from "./sign-in/sign-in.ts";
import { MOST_STREAMS, type OpenStream } from "./stream/streams.ts";

/** How requests to a listener beyond loopback are served. */
export interface RemoteAccess {
  certificate: ServingCertificate;
  /** Called for each request except health. */
  check: AccessCheck;
}

/** Dependencies that the servers of one agent share. */
export interface ServerContext {
  registry: Registry;
  /** Registered on `registry`. Default: registered by the server. */
  metrics?: ServerMetrics;
  clock: Clock;
  log: Logger;
}

export interface StatusServerOptions {
  context: ServerContext;
  served: Served;
  /** Default: "status-server". The servers of one agent need different names. */
  name?: string;
  /** "127.0.0.1:10290"; port 0: the operating system chooses. */
  address: string;
  /** Required for an address beyond loopback, and ignored on loopback, which is HTTP and open to the node's users. */
  remote?: RemoteAccess;
}

/** Connection limit. Beyond it, the least recently used idle connection is closed. */
export const MAX_CONNECTIONS = 64;

// Leaves connections for probes: requests that wait for the API server or a collector, and open streams, together occupy
// fewer than MAX_CONNECTIONS.
const FOR_PROBES = 8;
const REQUESTS_AT_ONCE = MAX_CONNECTIONS - MOST_STREAMS - FOR_PROBES;

const HEADERS_TIMEOUT_MS = 5_000;
const REQUEST_TIMEOUT_MS = 10_000;
// Longer than a handler's deadline. Disconnects clients that do not read the response.
const SOCKET_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 5_000;
const HANDSHAKE_TIMEOUT_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;
// Grace period for responses in progress when the server stops.
const STOP_GRACE_MS = 500;
const STREAM_ADDRESS = `${API_ROOT}/${STREAM_PATH}`;

/** Serves health, metrics, the page and the JSON API over HTTP, read-only. */
export class StatusServer implements Runnable {
  readonly name: string;
  readonly #context: ServerContext;
  readonly #configured: ListenAddress;
  /** Undefined on loopback. */
  readonly #remote: RemoteAccess | undefined;
  /** Undefined if there is no page or no token is required. */
  readonly #signIn: SignIn | undefined;
  readonly #router: Router;
  readonly #metrics: ServerMetrics;
  readonly #connections: ConnectionLimit;
  readonly #places = new Semaphore({ permits: REQUESTS_AT_ONCE, maxWaiting: 0 });
  readonly #listening = Promise.withResolvers<string>();
  #bound: AddressInfo | undefined;

  /** Throws `invalid` if an address, route or check is invalid or not allowed. */
  constructor(options: StatusServerOptions) {
    const { context, served } = options;
    const { registry, clock } = context;
    this.#context = context;
    this.name = options.name ?? "status-server";
    this.#configured = parseListenAddress(options.address);
    this.#remote = remoteOf(options, this.#configured);
    this.#signIn = this.#remote && served.page ? new SignIn(this.#remote.check) : undefined;
    this.#router = new Router({ served, registry, clock, withholdReasons: this.#remote !== undefined });
    this.#metrics = context.metrics ?? createServerMetrics(registry);
    this.#connections = new ConnectionLimit(MAX_CONNECTIONS, () => this.#metrics.refusedConnections.inc());
    // `run` throws the same error, so a promise without a caller must not be an unhandled rejection.
    this.#listening.promise.catch(() => {});
  }

  /** The bound address, with the actual port. Undefined while the server does not listen. */
  get address(): string | undefined {
    return this.#bound && formatAddress(this.#bound.address, this.#bound.port);
  }

  /** Resolves with the bound address once `run` listens. Rejects if it cannot. */
  ready(): Promise<string> {
    return this.#listening.promise;
  }

  /**
   * Serves until the signal aborts, then stops within a second. Throws if the address cannot be bound. May run only
   * once.
   */
  async run(signal: AbortSignal): Promise<void> {
    using scope = childScope(signal);
    let server: Server;
    try {
      signal.throwIfAborted();
      server = await this.#createServer(scope.signal);
      await listen(server, this.#configured);
    } catch (error) {
      this.#listening.reject(error);
      if (signal.aborted) return;
      throw error;
    }
    this.#bound = server.address() as AddressInfo;
    const isRemote = this.#remote !== undefined;
    this.#context.log.info({ address: this.address, tls: isRemote }, "status server is listening");
    this.#listening.resolve(this.address!);
    try {
      await failureOrAbort(server, signal);
    } finally {
      scope.abort(stopped("the status server stops"));
      await this.#close(server);
      this.#bound = undefined;
    }
  }

  async #createServer(signal: AbortSignal): Promise<Server> {
    const options = {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    };
    const serve = (request: IncomingMessage, response: ServerResponse) =>
      void this.#serve(request, response, signal);
    const server = this.#remote
      ? await this.#createTlsServer(this.#remote.certificate, options, serve, signal)
      : createServer(options, serve);
    paceConnections(server, this.#remote !== undefined, new LoopTurns(this.#context.clock));
    server.on("connection", (socket) => this.#connections.admit(socket));
    server.setTimeout(SOCKET_TIMEOUT_MS);
    return server;
  }

  async #createTlsServer(
    certificate: ServingCertificate,
    options: ServerOptions,
    serve: RequestListener,
    signal: AbortSignal,
  ): Promise<TlsServer> {
    const pair = await certificate.read();
    this.#signIn?.useKey(pair.key);
    const server = createTlsServer({ ...options, ...pair, handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, serve);
    void certificate.watch(signal, (renewed: CertificatePair) => {
      this.#signIn?.useKey(renewed.key);
      server.setSecureContext(renewed);
    });
    return server;
  }

  async #serve(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<void> {
    const { socket } = request;
    // Read before the connection counts as busy, so that slow forms, like half-sent requests, are closed at the
    // connection limit.
    const form = this.#signIn?.takesForm(request) ? await readForm(request) : undefined;
    const begin = this.#context.clock.monotonic();
    if (!this.#connections.begin(socket)) {
      // Requests pipelined behind it are not served either.
      if (socket instanceof PacedSocket) socket.stopReading();
      return;
    }
    using scope = childScope(signal);
    const onClose = () => scope.abort(stopped("the client closed the connection"));
    response.once("close", onClose);
    const { handler, reply, stream } = await this.#answer(request, form, scope.signal);
    response.off("close", onClose);
    this.#metrics.requests.inc({ handler, code: reply.status });
    this.#metrics.duration.observe((this.#context.clock.monotonic() - begin) / 1000);
    if (stream) {
      await this.#stream(request, response, stream, scope.signal);
      this.#connections.end(socket);
      return;
    }
    // The response closes the connection if requests are pipelined behind it; clients send them again (RFC 9112,
    // 9.3.2).
    sendReply(request, response, reply, signal.aborted || this.#connections.isPipelined(socket));
    this.#connections.end(socket);
  }

  async #stream(
    request: IncomingMessage,
    response: ServerResponse,
    stream: OpenStream,
    signal: AbortSignal,
  ): Promise<void> {
    const headers = { ...commonHeaders("text/event-stream"), Connection: "close" };
    if (request.method === "HEAD" || response.destroyed || signal.aborted) {
      stream.close();
      response.writeHead(200, headers).end();
      return;
    }
    await sendStream(response, stream, {
      clock: this.#context.clock,
      signal,
      headers,
      checkAccess: (scope) => this.#authorize(request, STREAM_ADDRESS, scope),
      onCut: () => this.#metrics.cutStreams.inc(),
      onError: (error) => this.#context.log.warn({ err: error }, "stream of events ended with an error"),
    });
  }

  async #answer(
    request: IncomingMessage,
    form: URLSearchParams | undefined,
    signal: AbortSignal,
  ): Promise<Routed> {
    let path: string | undefined;
    try {
      const refusal = this.#refusal(request);
      if (refusal) return { handler: "refused", reply: refusal };
      const target = request.url ?? "/";
      const url = URL.parse(target.startsWith("/") ? `http://localhost${target}` : target);
      if (!url) throw new NodekeeperError("invalid", "the request's path is not a URL path");
      const { pathname, searchParams } = url;
      path = pathname;
      const route = () => this.#router.answer(pathname, searchParams, signal, request.headers);
      if (isPublic(pathname)) return await route();
      return await this.#places.run(signal, async () => {
        const { method } = request;
        const signedIn = await this.#signIn?.answer({ method, path: pathname }, form, signal);
        if (signedIn) return signedIn;
        if (this.#remote) await this.#authorize(request, pathname, signal);
        return await route();
      });
    } catch (error) {
      const instead = path === undefined ? undefined : this.#signIn?.formFor(error, path, request);
      return instead ?? { handler: "refused", reply: withChallenge(errorReply(error)) };
    }
  }

  async #authorize(request: IncomingMessage, path: string, signal: AbortSignal): Promise<void> {
    const { authorization } = request.headers;
    const token =
      authorization === undefined
        ? this.#signIn?.tokenOf(request.headers)
        : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
    await this.#remote?.check({ token, verb: (request.method ?? "").toLowerCase(), path }, signal);
  }

  #refusal(request: IncomingMessage): Reply | undefined {
    const isForm = this.#signIn?.takesForm(request) === true;
    if (request.method !== "GET" && request.method !== "HEAD" && !isForm) {
      const reply = errorReply(
        new NodekeeperError("unsupported", `method ${request.method} is not served; GET and HEAD are`),
      );
      return { ...reply, status: 405, headers: { Allow: "GET, HEAD" } };
    }
    const { host } = request.headers;
    if (isCrossSite(request.headers, request.method))
      return errorReply(new NodekeeperError("forbidden", "requests from pages of other origins are refused"));
    if (isHostAllowed(host, this.#configured.host, this.#bound?.address ?? this.#configured.host))
      return undefined;
    const shown = JSON.stringify(host?.slice(0, 100));
    const message = `host ${shown} is not a name of this server; use localhost or its address`;
    return errorReply(new NodekeeperError("forbidden", message));
  }

  async #close(server: Server): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    const timer = this.#context.clock.after(STOP_GRACE_MS, () => server.closeAllConnections());
    await closed;
    timer.cancel();
  }
}

// Without TLS and authorization, the server must not be reachable from other machines.
function remoteOf(options: StatusServerOptions, { host }: ListenAddress): RemoteAccess | undefined {
  if (isLoopback(host)) return undefined;
  if (options.remote) return options.remote;
  throw new StatusServerWithoutTls({ address: options.address });
}

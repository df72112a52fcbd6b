// node:http and node:https without TLS, as far as the agent's client and servers use them: one connection per request.
import { EventEmitter } from "node:events";
import { Readable, Writable } from "node:stream";
import { machineOf } from "../machine.ts";
import { Connection, type HttpExchange, type Listener } from "../network.ts";
import { currentProcess, type Process } from "../process.ts";
import { failure } from "./sockets.ts";

/** Connections are not kept. */
export class Agent {
  readonly freeSockets = {};
  maxFreeSockets = 0;
  destroy(): void {}
}

interface RequestOptions {
  host: string;
  port: number | string;
  method: string;
  path: string;
  headers: Record<string, string>;
}

class ClientRequest extends EventEmitter {
  readonly reusedSocket = false;
  readonly #options: RequestOptions;
  readonly #process = currentProcess();
  #connection: Connection | undefined;
  #response: Response | undefined;
  #isOver = false;

  constructor(options: RequestOptions) {
    super();
    this.#options = options;
  }

  end(body?: Buffer): void {
    const process = this.#process;
    process.edge();
    const { network } = machineOf(process);
    const { host, port, method, path, headers } = this.#options;
    const fate = network.weather.breaks(method, path);
    process.after(network.weather.remoteMs(), () => {
      if (this.#isOver) return;
      const listener = network.find(`${host}:${port}`);
      if (!listener?.service.onRequest) {
        this.#fail(failure("ECONNREFUSED", "connect", `${host}:${port}`));
        return;
      }
      if (fate === "request") {
        this.#fail(failure("ECONNRESET", "read", ""));
        return;
      }
      const connection = new Connection(process, listener, () => network.weather.remoteMs());
      this.#connection = connection;
      const off = connection.onEnd("client", () => this.#fail(failure("ECONNRESET", "read", "")));
      const served = exchangeOf(
        connection,
        { method, url: path, headers, body: body ?? Buffer.alloc(0) },
        {
          onResponse: (status, answered) => {
            if (this.#isOver) return;
            if (fate === "response") {
              connection.endBy("client");
              this.#fail(failure("ECONNRESET", "read", ""));
              return;
            }
            this.#response = new Response(status, answered, () => connection.endBy("client"));
            this.emit("response", this.#response);
          },
          onChunk: (chunk) => void this.#response?.push(chunk),
          onEnd: () => {
            off();
            this.#isOver = true;
            this.#response?.push(null);
            connection.endBy("client");
            this.emit("close");
          },
        },
      );
      connection.send("server", () => listener.service.onRequest!(served));
    });
  }

  destroy(error?: Error): void {
    if (this.#isOver) return;
    this.#connection?.endBy("client");
    this.#process.after(0, () => this.#fail(error ?? failure("ECONNRESET", "socket hang up", "")));
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#response) this.#response.destroy(error);
    else this.emit("error", error);
    this.emit("close");
  }
}

interface ClientSide {
  onResponse(status: number, headers: Record<string, string>): void;
  onChunk(chunk: Uint8Array): void;
  onEnd(): void;
}

function exchangeOf(
  connection: Connection,
  request: Pick<HttpExchange, "method" | "url" | "headers" | "body">,
  client: ClientSide,
): HttpExchange {
  const server = connection.listener.process;
  const toClient = (deliver: () => void) => {
    server.edge();
    if (connection.isOpen("server")) connection.send("client", deliver);
  };
  return {
    ...request,
    client: connection.client,
    respond: (status, headers) => toClient(() => client.onResponse(status, headers)),
    isAbandoned: () => !connection.isOpen("client"),
    write: (chunk) => toClient(() => client.onChunk(chunk)),
    end: (onDelivered) =>
      toClient(() => {
        client.onEnd();
        onDelivered?.();
      }),
    cut: () => connection.endBy("server"),
    onClose: (callback) => void connection.onEnd("server", callback),
  };
}

class Response extends Readable {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly #hangUp: () => void;

  constructor(status: number, headers: Record<string, string>, hangUp: () => void) {
    super();
    this.statusCode = status;
    this.headers = headers;
    this.#hangUp = hangUp;
  }

  override _read(): void {}

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#hangUp();
    done(error);
  }
}

export function request(options: RequestOptions): ClientRequest {
  return new ClientRequest(options);
}

class ServedRequest extends Readable {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly socket: EventEmitter;

  constructor({ method, url, headers, body }: HttpExchange, socket: EventEmitter) {
    super();
    this.method = method;
    this.url = url;
    this.headers = { host: "127.0.0.1", ...headers };
    this.socket = socket;
    if (body.length > 0) this.push(body);
    this.push(null);
  }

  override _read(): void {}
}

class ServerResponse extends Writable {
  headersSent = false;
  statusCode = 200;
  readonly #headers: Record<string, string> = {};
  readonly #exchange: HttpExchange;
  #isFinished = false;

  constructor(exchange: HttpExchange) {
    super();
    this.#exchange = exchange;
    exchange.onClose(() => this.destroy());
  }

  setHeader(name: string, value: string | number): this {
    this.#headers[name.toLowerCase()] = String(value);
    return this;
  }

  appendHeader(name: string, value: string): this {
    return this.setHeader(name, value);
  }

  writeHead(status: number, headers: Record<string, string | number> = {}): this {
    for (const [name, value] of Object.entries(headers)) this.setHeader(name, value);
    this.statusCode = status;
    this.flushHeaders();
    return this;
  }

  flushHeaders(): void {
    if (this.headersSent) return;
    this.headersSent = true;
    this.#exchange.respond(this.statusCode, this.#headers);
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.flushHeaders();
    this.#exchange.write(chunk);
    done();
  }

  override _final(done: () => void): void {
    this.flushHeaders();
    this.#isFinished = true;
    this.#exchange.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#isFinished && !currentProcess().isDead) this.#exchange.cut();
    done(error);
  }
}

type Handler = (request: ServedRequest, response: ServerResponse) => void;

class Server extends EventEmitter {
  maxConnections = 0;
  keepAliveTimeout = 0;
  readonly #handler: Handler;
  #process: Process | undefined;
  #listener: Listener | undefined;
  #address: { address: string; port: number } | undefined;

  constructor(handler: Handler) {
    super();
    this.#handler = handler;
  }

  listen(where: unknown, ...rest: unknown[]): this {
    const options = typeof where === "object" ? (where as { port: number; host: string }) : undefined;
    const host = options?.host ?? (rest[0] as string);
    const process = currentProcess();
    this.#process = process;
    const { network } = machineOf(process);
    const port = (options?.port ?? (where as number)) || network.freePort();
    const done = rest.find((one) => typeof one === "function") as (() => void) | undefined;
    process.after(0, () => {
      process.edge();
      if (network.find(`${host}:${port}`)) {
        this.emit("error", failure("EADDRINUSE", "listen", `${host}:${port}`));
        return;
      }
      this.#listener = network.listen(`${host}:${port}`, process, {
        onRequest: (exchange) => {
          const socket = Object.assign(new EventEmitter(), { destroy: () => exchange.cut() });
          this.emit("connection", socket);
          const response = new ServerResponse(exchange);
          response.once("close", () => socket.emit("close"));
          this.#handler(new ServedRequest(exchange, socket), response);
        },
      });
      this.#address = { address: host, port };
      done?.();
      this.emit("listening");
    });
    return this;
  }

  address() {
    return this.#address;
  }

  close(done?: () => void): this {
    this.#listener?.stop();
    const wait = () => {
      if (this.#listener && this.#listener.connections.size > 0) this.#process?.after(1, wait);
      else done?.();
    };
    this.#process?.after(0, wait);
    return this;
  }

  closeIdleConnections(): void {}

  closeAllConnections(): void {
    this.#listener?.close();
  }

  setTimeout(): this {
    return this;
  }
}

export function createServer(...args: unknown[]): Server {
  return new Server(args.find((one) => typeof one === "function") as Handler);
}

export default { Agent, request, createServer };

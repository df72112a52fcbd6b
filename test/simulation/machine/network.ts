import type { Process } from "./process.ts";

/** What a listening process does with its clients. */
export interface Service {
  /** A call of gRPC. */
  onCall?: (call: ServerCall) => void;
  /** A request of HTTP. */
  onRequest?: (exchange: HttpExchange) => void;
  /** A connection on which nothing is sent. */
  onConnection?: () => void;
}

/** A call of gRPC as the server sees it: messages are bytes. */
export interface ServerCall {
  /** "/package.Service/Method" */
  readonly path: string;
  readonly metadata: Headers_;
  readonly request: Uint8Array;
  /** Calls back when the client no longer waits. */
  onCancel(callback: () => void): void;
  readonly isCancelled: boolean;
  send(message: Uint8Array): void;
  /** @param message sent with the status. A client that waits for one message has nothing of it before the status. */
  end(status: number, details: string, trailers?: Headers_, message?: Uint8Array): void;
}

type Headers_ = Readonly<Record<string, string>>;

/** What a client of gRPC is told. Nothing after `onEnd`. */
export interface ClientCall {
  path: string;
  metadata?: Headers_;
  request: Uint8Array;
  onMessage(message: Uint8Array): void;
  /** @param status undefined if the connection ended before the status */
  onEnd(status: number | undefined, details: string, trailers: Headers_): void;
}

/** One request of HTTP on a connection of its own. */
export interface HttpExchange {
  readonly client: Process;
  readonly method: string;
  readonly url: string;
  readonly headers: Headers_;
  readonly body: Uint8Array;
  respond(status: number, headers: Record<string, string>): void;
  /** Whether the client no longer waits. */
  isAbandoned(): boolean;
  write(chunk: Uint8Array): void;
  /**
   * Ends the response.
   * @param onDelivered called when the client has received all of it
   */
  end(onDelivered?: () => void): void;
  /** Breaks the connection. */
  cut(): void;
  /** Calls back when the connection has ended. */
  onClose(callback: () => void): void;
}

export interface HttpClient {
  onResponse(status: number, headers: Record<string, string>): void;
  onChunk(chunk: Uint8Array): void;
  onEnd(): void;
  onError(error: NodeJS.ErrnoException): void;
}

/** How long messages take, and what is lost: set by the faults of a world. */
export interface Weather {
  /** Milliseconds until a message on a unix socket arrives. */
  localMs(): number;
  /** Milliseconds until a message to or from the API server arrives. */
  remoteMs(): number;
  /** Whether the connection of a request to the API server breaks: before it arrives, or before its response does. */
  breaks(method: string, url: string): "request" | "response" | undefined;
}

const calm: Weather = { localMs: () => 0.1, remoteMs: () => 1, breaks: () => undefined };

/** All listening sockets of a machine, and the way between them. */
export class Network {
  weather: Weather = calm;
  readonly #listeners = new Map<string, Listener>();
  #ports = 40_000;

  /** @param address identity of a socket file, or "host:port" */
  listen(address: string, process: Process, service: Service): Listener {
    const listener: Listener = new Listener(process, service, () => {
      // By now another process may listen there.
      if (this.#listeners.get(address) === listener) this.#listeners.delete(address);
    });
    this.#listeners.set(address, listener);
    return listener;
  }

  /** Drops the references to the world: Node keeps signals of requests that never ended, and all they refer to. */
  end(): void {
    this.weather = calm;
  }

  freePort(): number {
    return ++this.#ports;
  }

  find(address: string): Listener | undefined {
    return this.#listeners.get(address);
  }
}

/** A listening socket with its connections. */
export class Listener {
  readonly process: Process;
  service: Service;
  readonly connections = new Set<Connection>();
  readonly #forget: () => void;
  readonly #offDeath: () => void;

  constructor(process: Process, service: Service, forget: () => void) {
    this.process = process;
    this.service = service;
    this.#forget = forget;
    this.#offDeath = process.onDeath(() => this.close());
  }

  /** Accepts no further connections. */
  stop(): void {
    if (this.connections.size === 0) this.#offDeath();
    this.#forget();
  }

  /** Also ends all connections. */
  close(): void {
    this.stop();
    this.#offDeath();
    for (const connection of [...this.connections]) connection.endBy("server");
    this.service = {};
  }
}

type Side = "client" | "server";

/** A connection between two processes: ordered in each direction, and ended for both if one of them ends. */
export class Connection {
  readonly client: Process;
  readonly listener: Listener;
  readonly #latency: () => number;
  readonly #lastAt: Record<Side, number> = { client: 0, server: 0 };
  readonly #onEnd: Record<Side, Set<() => void>> = { client: new Set(), server: new Set() };
  readonly #isEnded: Record<Side, boolean> = { client: false, server: false };
  readonly #offDeath: () => void;

  constructor(client: Process, listener: Listener, latency: () => number) {
    this.client = client;
    this.listener = listener;
    this.#latency = latency;
    listener.connections.add(this);
    this.#offDeath = client.onDeath(() => this.endBy("client"));
  }

  /** Whether this side can still send. */
  isOpen(side: Side): boolean {
    return !this.#isEnded[side];
  }

  /** Runs `arrive` in the process of the other side when the message has arrived, unless that side has ended. */
  send(to: Side, arrive: () => void): void {
    const { scheduler } = this.client;
    const at = Math.max(scheduler.now + this.#latency(), this.#lastAt[to]);
    this.#lastAt[to] = at;
    // Not after `at - now`: that sum may be rounded to before the earlier message.
    this.#process(to).at(at, () => {
      if (!this.#isEnded[to]) arrive();
    });
  }

  /** Calls back, in the side's process, when the connection has ended for it. */
  onEnd(side: Side, callback: () => void): () => void {
    this.#onEnd[side].add(callback);
    return () => this.#onEnd[side].delete(callback);
  }

  /** Ends the connection: at once for one side, for the other when what was sent has arrived. */
  endBy(side: Side): void {
    if (this.#isEnded[side]) return;
    const other = side === "client" ? "server" : "client";
    this.#end(side);
    this.send(other, () => this.#end(other));
  }

  #process(side: Side): Process {
    return side === "client" ? this.client : this.listener.process;
  }

  #end(side: Side): void {
    this.#isEnded[side] = true;
    if (this.#isEnded.client && this.#isEnded.server) {
      this.listener.connections.delete(this);
      this.#offDeath();
    }
    const callbacks = [...this.#onEnd[side]];
    this.#onEnd[side].clear();
    if (!this.#process(side).isDead) for (const callback of callbacks) callback();
  }

  /** Makes a call of gRPC. Returns a function that cancels it. */
  call(call: ClientCall): () => void {
    let isOver = false;
    let isServed = false;
    const finish = (status: number | undefined, details: string, trailers: Headers_ = {}) => {
      if (isOver) return;
      isOver = true;
      offEnd();
      call.onEnd(status, details, trailers);
    };
    const offEnd = this.onEnd("client", () => finish(undefined, "the connection ended"));
    const cancels = new Set<() => void>();
    let isCancelled = false;
    const cancelled = () => {
      if (isCancelled || isServed) return;
      isCancelled = true;
      for (const callback of cancels) callback();
    };
    const serverCall: ServerCall = {
      path: call.path,
      metadata: call.metadata ?? {},
      request: call.request,
      onCancel: (callback) => void cancels.add(callback),
      get isCancelled() {
        return isCancelled;
      },
      send: (message) => {
        this.listener.process.edge();
        if (!isCancelled) this.send("client", () => !isOver && call.onMessage(message));
      },
      end: (status, details, trailers, message) => {
        this.listener.process.edge();
        if (isCancelled || isServed) return;
        isServed = true;
        offServerEnd();
        this.send("client", () => {
          if (message && !isOver) call.onMessage(message);
          finish(status, details, trailers);
        });
      },
    };
    const offServerEnd = this.onEnd("server", cancelled);
    this.send("server", () => this.listener.service.onCall?.(serverCall));
    return () => {
      if (isOver) return;
      isOver = true;
      offEnd();
      this.send("server", cancelled);
    };
  }
}

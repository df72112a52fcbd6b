// @grpc/grpc-js, as far as the agent and the actors use it: channels with their states, and the server of the runtime.
import { EventEmitter } from "node:events";
import { connectivityState, status } from "@grpc/grpc-js";
import type { Timer } from "@nodekeeper/core/lib";
import { Connection, type Listener, type ServerCall } from "../network.ts";
import { currentProcess } from "../process.ts";
import { connectUnix, listenUnix } from "./sockets.ts";

export { connectivityState, status } from "@grpc/grpc-js";

export class ChannelCredentials {}
export class CallCredentials {}
export const credentials = { createInsecure: () => new ChannelCredentials() };
export const ServerCredentials = { createInsecure: () => undefined };

// As `dialUnix` sets them.
const FIRST_BACKOFF_MS = 200;
const LONGEST_BACKOFF_MS = 2_000;

/** A channel to a unix socket. Connects on the first call or question, and again while somebody needs it. */
export class Channel {
  readonly #path: string;
  readonly #process = currentProcess();
  #state: connectivityState = connectivityState.IDLE;
  #connection: Connection | undefined;
  #giveUp = () => {};
  #backoffMs = FIRST_BACKOFF_MS;
  #retry: Timer | undefined;
  #problem = "";
  readonly #watchers: { state: connectivityState; callback: () => void }[] = [];

  constructor(target: string) {
    this.#path = target.replace(/^unix:/, "");
  }

  getConnectivityState(tryToConnect: boolean): connectivityState {
    if (tryToConnect && this.#state === connectivityState.IDLE) this.#connect();
    return this.#state;
  }

  watchConnectivityState(state: connectivityState, _deadline: number, callback: () => void): void {
    if (this.#state === state) this.#watchers.push({ state, callback });
    else this.#process.after(0, callback);
  }

  close(): void {
    this.#giveUp();
    this.#retry?.cancel();
    this.#connection?.endBy("client");
    this.#become(connectivityState.SHUTDOWN);
  }

  /** Resolves with a connection. Rejects with the reason why there is none. */
  async connected(): Promise<Connection> {
    for (;;) {
      const state = this.getConnectivityState(true);
      if (state === connectivityState.READY) return this.#connection!;
      if (state === connectivityState.SHUTDOWN) throw new Error("Channel has been shut down");
      if (state === connectivityState.TRANSIENT_FAILURE)
        throw new Error(`No connection established. Last error: ${this.#problem}`);
      await new Promise<void>((resolve) => this.watchConnectivityState(state, 0, resolve));
    }
  }

  #connect(): void {
    this.#become(connectivityState.CONNECTING);
    this.#giveUp = connectUnix(this.#path, (result) => {
      if (this.#state === connectivityState.SHUTDOWN) return;
      if (!(result instanceof Connection)) {
        this.#problem = result.message;
        this.#fail();
        return;
      }
      // The first thing that a server of HTTP/2 sends: a process that is stopped does not.
      result.send("server", () => result.send("client", () => this.#use(result)));
      result.onEnd("client", () => this.#lost(result));
    });
  }

  #use(connection: Connection): void {
    if (this.#state !== connectivityState.CONNECTING) return;
    this.#connection = connection;
    this.#backoffMs = FIRST_BACKOFF_MS;
    this.#become(connectivityState.READY);
  }

  #lost(connection: Connection): void {
    if (this.#state === connectivityState.SHUTDOWN) return;
    if (this.#connection === connection) {
      this.#connection = undefined;
      this.#become(connectivityState.IDLE);
      return;
    }
    this.#problem = "the connection was closed";
    this.#fail();
  }

  #fail(): void {
    this.#become(connectivityState.TRANSIENT_FAILURE);
    this.#retry = this.#process.after(this.#backoffMs, () => {
      if (this.#state === connectivityState.TRANSIENT_FAILURE) this.#connect();
    });
    this.#backoffMs = Math.min(this.#backoffMs * 2, LONGEST_BACKOFF_MS);
  }

  #become(state: connectivityState): void {
    if (this.#state === state) return;
    this.#state = state;
    for (const { callback } of this.#watchers.splice(0)) this.#process.after(0, callback);
  }
}

type Serialize = (value: unknown) => Uint8Array;
type Deserialize = (bytes: Uint8Array) => unknown;
// biome-ignore lint/suspicious/noExplicitAny: handlers of every message
type Handler = (call: any, reply?: (error: unknown, value?: unknown) => void) => void;

interface Method {
  handler: Handler;
  serialize: Serialize;
  deserialize: Deserialize;
  type: string;
}

/** The server of the library itself, which the simulated runtime uses. */
export class Server {
  readonly #methods = new Map<string, Method>();
  #listener: Listener | undefined;

  register(path: string, handler: Handler, serialize: Serialize, deserialize: Deserialize, type: string) {
    this.#methods.set(path, { handler, serialize, deserialize, type });
  }

  bindAsync(target: string, _credentials: unknown, done: (error: Error | null) => void): void {
    currentProcess().after(0, () => {
      try {
        this.#listener = listenUnix(target.replace(/^unix:/, ""), { onCall: (call) => this.#serve(call) });
      } catch (error) {
        done(error as Error);
        return;
      }
      done(null);
    });
  }

  forceShutdown(): void {
    this.#listener?.close();
  }

  #serve(call: ServerCall): void {
    const method = this.#methods.get(call.path);
    if (!method) {
      call.end(status.UNIMPLEMENTED, `The server does not implement the method ${call.path}`);
      return;
    }
    const stream = new ServedCall(call, method);
    if (method.type === "serverStream") {
      method.handler(stream);
      return;
    }
    method.handler(stream, (error, value) => {
      if (error) stream.emit("error", error);
      else stream.finish(value);
    });
  }
}

class ServedCall extends EventEmitter {
  readonly request: unknown;
  readonly #call: ServerCall;
  readonly #serialize: Serialize;

  constructor(call: ServerCall, { serialize, deserialize }: Method) {
    super();
    this.#call = call;
    this.#serialize = serialize;
    this.request = deserialize(call.request);
    call.onCancel(() => this.emit("cancelled"));
    this.on("error", ({ code, details, message }) => call.end(code ?? status.UNKNOWN, details ?? message));
  }

  get cancelled(): boolean {
    return this.#call.isCancelled;
  }

  write(value: unknown): boolean {
    this.#call.send(this.#serialize(value));
    return true;
  }

  end(): void {
    this.#call.end(status.OK, "");
  }

  finish(value: unknown): void {
    this.#call.end(status.OK, "", undefined, this.#serialize(value));
  }
}

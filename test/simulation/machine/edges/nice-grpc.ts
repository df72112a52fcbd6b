// nice-grpc on the connections of the machine: clients and servers of unary methods and of streams from the server.
import { ClientError, Metadata, type Metadata as MetadataType, ServerError, Status } from "nice-grpc";
import type { Listener, ServerCall } from "../network.ts";
import { currentProcess } from "../process.ts";
import type { Channel } from "./grpc-js.ts";
import { listenUnix } from "./sockets.ts";

export { ClientError, Metadata, ServerError, Status } from "nice-grpc";
export { Channel, ChannelCredentials } from "./grpc-js.ts";

interface MessageType {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
  fromPartial?(message: unknown): unknown;
}

/** A method as ts-proto describes it, or with functions of its own. */
interface AnyMethod {
  name?: string;
  path?: string;
  requestType?: MessageType;
  responseType?: MessageType;
  responseStream: boolean;
  requestSerialize?: (value: unknown) => Uint8Array;
  requestDeserialize?: (bytes: Uint8Array) => unknown;
  responseSerialize?: (value: unknown) => Uint8Array;
  responseDeserialize?: (bytes: Uint8Array) => unknown;
}

type Definition = { fullName?: string; methods?: Record<string, AnyMethod> } & Record<string, unknown>;

interface Method {
  path: string;
  isStream: boolean;
  encodeRequest(value: unknown): Uint8Array;
  decodeRequest(bytes: Uint8Array): unknown;
  encodeResponse(value: unknown): Uint8Array;
  decodeResponse(bytes: Uint8Array): unknown;
}

function methodsOf(definition: Definition): Map<string, Method> {
  const methods = definition.methods ?? (definition as Record<string, AnyMethod>);
  return new Map(
    Object.entries(methods).map(([key, method]) => [key, methodOf(definition.fullName, method)] as const),
  );
}

function methodOf(service: string | undefined, method: AnyMethod): Method {
  const { requestType, responseType } = method;
  const encode = (type: MessageType) => (value: unknown) =>
    type.encode(type.fromPartial ? type.fromPartial(value) : value).finish();
  return {
    path: method.path ?? `/${service}/${method.name}`,
    isStream: method.responseStream,
    encodeRequest: method.requestSerialize ?? encode(requestType!),
    decodeRequest: method.requestDeserialize ?? ((bytes) => requestType!.decode(bytes)),
    encodeResponse: method.responseSerialize ?? encode(responseType!),
    decodeResponse: method.responseDeserialize ?? ((bytes) => responseType!.decode(bytes)),
  };
}

interface CallOptions {
  signal?: AbortSignal;
  metadata?: MetadataType;
  onTrailer?: (trailer: MetadataType) => void;
}

export function createClient(definition: Definition, channel: Channel): Record<string, unknown> {
  const client: Record<string, unknown> = {};
  for (const [name, method] of methodsOf(definition)) {
    client[name] = method.isStream
      ? (request: unknown, options: CallOptions = {}) => messages(channel, method, request, options)
      : (request: unknown, options: CallOptions = {}) => one(channel, method, request, options);
  }
  return client;
}

async function one(
  channel: Channel,
  method: Method,
  request: unknown,
  options: CallOptions,
): Promise<unknown> {
  let answer: { value: unknown } | undefined;
  for await (const value of messages(channel, method, request, options)) answer = { value };
  if (answer) return answer.value;
  throw new ClientError(method.path, Status.INTERNAL, "No message received");
}

// The error of an aborted call: equals AbortError of abort-controller-x, which nice-grpc throws for streams.
// `codeOf` recognizes it by its name. Unary calls of nice-grpc 2.1 reject with the signal's reason instead.
function aborted(): Error {
  return Object.assign(new Error("The operation has been aborted"), { name: "AbortError" });
}

async function* messages(
  channel: Channel,
  method: Method,
  request: unknown,
  { signal, metadata, onTrailer }: CallOptions,
): AsyncGenerator<unknown> {
  if (signal?.aborted) throw aborted();
  const bytes = method.encodeRequest(request);
  const queue: Uint8Array[] = [];
  let ended: { failure?: unknown } | undefined;
  let wake = () => {};
  let cancel = () => {};
  const stop = (failure?: unknown) => {
    ended ??= failure === undefined ? {} : { failure };
    wake();
  };
  const onAbort = () => {
    queue.length = 0;
    cancel();
    stop(aborted());
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  channel.connected().then(
    (connection) => {
      if (ended) return;
      cancel = connection.call({
        path: method.path,
        metadata: headersOf(metadata),
        request: bytes,
        onMessage: (message) => {
          queue.push(message);
          wake();
        },
        onEnd: (status, details, trailers) => {
          onTrailer?.(new Metadata(trailers));
          stop(
            status === Status.OK
              ? undefined
              : new ClientError(method.path, status ?? Status.UNAVAILABLE, details),
          );
        },
      });
    },
    (error: Error) => stop(new ClientError(method.path, Status.UNAVAILABLE, error.message)),
  );
  try {
    for (;;) {
      const message = queue.shift();
      if (message) yield method.decodeResponse(message);
      else if (ended) break;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
    if (ended.failure !== undefined) throw ended.failure;
  } finally {
    signal?.removeEventListener("abort", onAbort);
    if (!ended) cancel();
  }
}

function headersOf(metadata: MetadataType | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [key, values] of metadata ?? []) headers[key] = String(values[0]);
  return headers;
}

type Implementation = Record<string, (request: unknown, context: unknown) => unknown>;

export function createServer(): SimulatedServer {
  return new SimulatedServer();
}

export class SimulatedServer {
  readonly #methods = new Map<string, { method: Method; serve: Implementation[string] }>();
  readonly #calls = new Set<() => void>();
  #idle = () => {};
  #listener: Listener | undefined;

  add(definition: Definition, implementation: Implementation): void {
    for (const [name, method] of methodsOf(definition)) {
      const serve = (request: unknown, context: unknown) => implementation[name]!(request, context);
      this.#methods.set(method.path, { method, serve });
    }
  }

  async listen(target: string): Promise<number> {
    const process = currentProcess();
    await new Promise<void>((resolve) => process.after(0, resolve));
    this.#listener = listenUnix(target.replace(/^unix:/, ""), { onCall: (call) => void this.#serve(call) });
    return 0;
  }

  /** Ends when the calls in progress have ended. */
  async shutdown(): Promise<void> {
    this.#listener?.stop();
    if (this.#calls.size > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
    this.#listener?.close();
  }

  forceShutdown(): void {
    this.#listener?.close();
    for (const abort of [...this.#calls]) abort();
  }

  async #serve(call: ServerCall): Promise<void> {
    const served = this.#methods.get(call.path);
    if (!served) {
      call.end(Status.UNIMPLEMENTED, `The server does not implement the method ${call.path}`);
      return;
    }
    const { method, serve } = served;
    const controller = new AbortController();
    const abort = () => controller.abort(aborted());
    this.#calls.add(abort);
    call.onCancel(abort);
    const trailer = new Metadata();
    const context = {
      signal: controller.signal,
      metadata: new Metadata(call.metadata),
      peer: "unix:",
      header: new Metadata(),
      trailer,
      sendHeader: () => {},
    };
    try {
      const request = method.decodeRequest(call.request);
      if (method.isStream) {
        for await (const value of serve(request, context) as AsyncIterable<unknown>) {
          if (controller.signal.aborted) break;
          call.send(method.encodeResponse(value));
        }
        call.end(Status.OK, "", headersOf(trailer));
      } else {
        const response = method.encodeResponse(await serve(request, context));
        call.end(Status.OK, "", headersOf(trailer), response);
      }
    } catch (error) {
      const { code, details } =
        error instanceof ServerError
          ? error
          : { code: Status.UNKNOWN, details: "Unknown server error occurred" };
      if (!currentProcess().isDead) call.end(code, details, headersOf(trailer));
    } finally {
      this.#calls.delete(abort);
      if (this.#calls.size === 0) this.#idle();
    }
  }
}

import { once } from "node:events";
import { basename } from "node:path";
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { RuntimeServiceDefinition, type StopContainerRequest } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type OwnSocket, placeSocket, removeSocket } from "@nodekeeper/core/grpc";
import { abortable, type Clock, stopped } from "@nodekeeper/core/lib";
import { listAnswers, type MethodName, unaryAnswers } from "./answers.ts";
import { type CallFault, type RuntimeCall, refusal, serverError, unimplemented } from "./call-faults.ts";
import { type EventFaults, type EventMode, EventStream, RecentEvents } from "./event-stream.ts";
import { podUidLabel } from "./list-bytes.ts";
import type { SimulatedRuntime } from "./simulated-runtime.ts";

export interface SimulatedCriOptions {
  runtime: SimulatedRuntime;
  /** Path of the socket, at most 107 bytes. */
  socket: string;
  clock: Clock;
  /** Returns the fault of a call. Called before each call. Undefined: no fault. */
  faults?: (call: RuntimeCall) => CallFault | undefined;
  events?: EventMode;
  eventFaults?: EventFaults;
  /** Whether lists can be streamed (KEP-5825). Default: no, as in most current runtimes. */
  streamsLists?: boolean;
  version?: string;
  /** Name of the runtime as in the response to Version. Default "simulated". */
  name?: string;
  random?: () => number;
  /** Serves StopContainer. Default: `runtime` stops the container, also if the client gives the call up. */
  stopContainer?: ContainerStopper;
}

/**
 * Stops a container for a client.
 * @param timeoutSeconds from SIGTERM to SIGKILL
 * @param cancelled aborts if the client gives the call up, or the server is stopped
 */
export type ContainerStopper = (id: string, timeoutSeconds: number, cancelled: AbortSignal) => Promise<void>;

type Parts<R> = (request: R, cancelled: AbortSignal) => AsyncIterable<unknown> | Iterable<unknown>;

const STREAMED_AT_ONCE = 100;
const { methods } = RuntimeServiceDefinition;

/** What names the subject of a call. */
interface CallRequest {
  containerId?: string;
  podSandboxId?: string;
  filter?: { labelSelector?: Readonly<Record<string, string>> };
}

/** Serves a simulated runtime over CRI on a real unix socket. */
export class SimulatedCri {
  readonly socket: string;
  faults: (call: RuntimeCall) => CallFault | undefined;
  events: EventMode;
  eventFaults: EventFaults;
  streamsLists: boolean;
  version: string;
  readonly #name: string;
  readonly #runtime: SimulatedRuntime;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #stopContainer: ContainerStopper | undefined;
  readonly #streams = new Set<EventStream>();
  readonly #recent = new RecentEvents();
  #dropped = 0;
  #server: Server | undefined;
  #place: OwnSocket | undefined;
  #stopping = new AbortController();

  constructor(options: SimulatedCriOptions) {
    this.socket = options.socket;
    this.faults = options.faults ?? (() => undefined);
    this.events = options.events ?? "on";
    this.eventFaults = options.eventFaults ?? {};
    this.streamsLists = options.streamsLists ?? false;
    this.version = options.version ?? "1.0.0";
    this.#name = options.name ?? "simulated";
    this.#runtime = options.runtime;
    this.#clock = options.clock;
    this.#random = options.random ?? Math.random;
    this.#stopContainer = options.stopContainer;
    this.#runtime.subscribe((event) => {
      this.#recent.push(event);
      for (const stream of this.#streams) stream.push(event);
    });
  }

  /** Number of listeners of container events. */
  get listeners(): number {
    return this.#streams.size;
  }

  /** Number of events that listeners lost because they did not read. */
  get droppedEvents(): number {
    return [...this.#streams].reduce((sum, { dropped }) => sum + dropped, this.#dropped);
  }

  /**
   * Resolves once the runtime is served. A stale socket is replaced. Throws `conflict` if another process serves the
   * path or the file is not a socket, and `invalid` if the path is not valid for a socket.
   */
  async start(): Promise<void> {
    this.#stopping = new AbortController();
    const server = new Server({ "grpc.max_send_message_length": -1, "grpc.enable_channelz": 0 });
    this.#register(server);
    try {
      const hidden = `.${basename(this.socket)}.new`;
      this.#place = await placeSocket({ path: this.socket, hiddenName: hidden }, this.#clock, (path) =>
        bind(server, path),
      );
    } catch (error) {
      server.forceShutdown();
      throw error;
    }
    this.#server = server;
  }

  /** Closes all connections, as if the runtime were killed. Has no effect if it is not served. */
  async stop(): Promise<void> {
    this.#stopping.abort(stopped("the runtime is stopping"));
    for (const stream of this.#streams) stream.end(stopped("the runtime is stopping"));
    this.#server?.forceShutdown();
    this.#server = undefined;
    const place = this.#place;
    this.#place = undefined;
    if (place) await removeSocket(place, this.#clock);
  }

  /** Stops and starts again with the same containers. `between` runs while stopped. */
  async restart(between: () => Promise<void> | void = () => {}): Promise<void> {
    await this.stop();
    await between();
    await this.start();
  }

  #register(server: Server): void {
    const lists = listAnswers(this.#runtime);
    const version = () => ({ name: this.#name, version: this.version });
    const answers = unaryAnswers({ runtime: this.#runtime, clock: this.#clock, version }, lists);
    for (const [name, answer] of Object.entries(answers)) {
      if (name === "stopContainer" && this.#stopContainer) continue;
      this.#add(
        server,
        name as MethodName,
        (call: ServerUnaryCall<unknown, unknown>, reply: sendUnaryData<unknown>) => {
          this.#answer(name as MethodName, call.request, (request, signal) =>
            (answer as (request: unknown, signal: AbortSignal) => unknown)(request, signal),
          ).then(
            (value) => reply(null, value),
            (error) => reply(serverError(error)),
          );
        },
      );
    }
    if (this.#stopContainer) this.#addStop(server, this.#stopContainer);
    this.#addStream(server, "streamPodSandboxes", (request: { filter: undefined }) =>
      inBatches(lists.sandboxes(request.filter), (batch) => lists.bytes.sandboxes(batch)),
    );
    this.#addStream(server, "streamContainers", (request: { filter: undefined }) =>
      inBatches(lists.containers(request.filter), (batch) => lists.bytes.containers(batch)),
    );
    this.#addStream(server, "getContainerEvents", (_request, cancelled) => this.#listen(cancelled));
  }

  async *#listen(cancelled: AbortSignal): AsyncGenerator<unknown> {
    if (this.events === "unimplemented") throw unimplemented("GetContainerEvents");
    if (this.events === "disabled") return;
    if (cancelled.aborted) return;
    const stream = new EventStream({
      clock: this.#clock,
      faults: () => this.eventFaults,
      random: this.#random,
    });
    for (const event of this.#recent.last(this.eventFaults.replayed ?? 0)) stream.push(event);
    this.#streams.add(stream);
    cancelled.addEventListener("abort", () => stream.end(), { once: true });
    try {
      yield* stream.read();
    } finally {
      this.#streams.delete(stream);
      this.#dropped += stream.dropped;
    }
  }

  async #answer(
    name: MethodName,
    request: unknown,
    work: (request: unknown, signal: AbortSignal) => unknown,
  ): Promise<unknown> {
    const { signal } = this.#stopping;
    const fault = this.faults(this.#callOf(name, request));
    if (fault && "hang" in fault) await abortable(new Promise<never>(() => {}), signal);
    if (fault && "code" in fault) throw refusal(fault.code, fault.message);
    if (fault && "bytes" in fault) return fault.bytes;
    if (fault && "delayMs" in fault) await this.#clock.sleep(fault.delayMs, signal);
    return await work(request, signal);
  }

  #callOf(name: MethodName, request: unknown): RuntimeCall {
    const { containerId, podSandboxId, filter } = request as CallRequest;
    const id = containerId ?? podSandboxId;
    const subject =
      (containerId && this.#runtime.containers.get(containerId)) ||
      (podSandboxId && this.#runtime.sandboxes.get(podSandboxId));
    const podUid = subject ? subject.pod.uid : filter?.labelSelector?.[podUidLabel];
    return { method: methods[name].name, id, podUid };
  }

  #addStop(server: Server, stop: ContainerStopper): void {
    this.#add(
      server,
      "stopContainer",
      (call: ServerUnaryCall<StopContainerRequest, unknown>, reply: sendUnaryData<unknown>) => {
        const cancelled = new AbortController();
        call.once("cancelled", () => cancelled.abort(stopped("the client gave the call up")));
        this.#answer("stopContainer", call.request, async (_request, stopping) => {
          const { containerId, timeout } = call.request;
          await stop(containerId, Number(timeout), AbortSignal.any([cancelled.signal, stopping]));
          return {};
        }).then(
          (value) => reply(null, value),
          (error) => reply(serverError(error)),
        );
      },
    );
  }

  #addStream<R>(server: Server, name: MethodName, parts: Parts<R>): void {
    this.#add(server, name, async (call: ServerWritableStream<R, unknown>) => {
      const cancelled = new AbortController();
      call.once("cancelled", () => cancelled.abort());
      try {
        for await (const part of this.#streamParts(name, call.request, parts, cancelled.signal)) {
          if (call.cancelled) return;
          if (!call.write(part)) await abortable(once(call, "drain"), cancelled.signal);
        }
        call.end();
      } catch (error) {
        if (!call.cancelled) call.emit("error", serverError(error));
      }
    });
  }

  async *#streamParts<R>(
    name: MethodName,
    request: R,
    parts: Parts<R>,
    cancelled: AbortSignal,
  ): AsyncGenerator<unknown> {
    const bytes = await this.#answer(name, request, () => undefined);
    if (bytes instanceof Uint8Array) {
      yield bytes;
      return;
    }
    if (name !== "getContainerEvents" && !this.streamsLists) throw unimplemented(methods[name].name);
    yield* parts(request, cancelled);
  }

  #add(server: Server, name: MethodName, handler: unknown): void {
    const { name: method, requestType, responseType, responseStream } = methods[name];
    server.register(
      `/${RuntimeServiceDefinition.fullName}/${method}`,
      handler as UntypedHandleCall as never,
      (answer: unknown) =>
        asBuffer(
          answer instanceof Uint8Array
            ? answer
            : responseType.encode(responseType.fromPartial(answer as never) as never).finish(),
        ),
      (bytes) => requestType.decode(bytes),
      responseStream ? "serverStream" : "unary",
    );
  }
}

function* inBatches<T>(
  items: readonly T[],
  encode: (batch: readonly T[]) => Uint8Array,
): Generator<Uint8Array> {
  for (let at = 0; at < items.length; at += STREAMED_AT_ONCE)
    yield encode(items.slice(at, at + STREAMED_AT_ONCE));
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    );
  });
}

// Without a copy, because a list takes megabytes.
function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);
}

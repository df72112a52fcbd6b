import { fromGrpcError } from "@nodekeeper/core/grpc";
import {
  type Clock,
  childScope,
  codeOf,
  type ErrorCode,
  type ErrorId,
  NodekeeperError,
  withDeadline,
} from "@nodekeeper/core/lib";
import type { RuntimeClient, RuntimeConnection } from "./connection.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import type { RuntimeSettings } from "./settings.ts";
import type { CallInFlight } from "./types.ts";

export interface RuntimeCallsOptions {
  connection: RuntimeConnection;
  clock: Clock;
  metrics: RuntimeMetrics;
  settings: RuntimeSettings;
}

/** One call: the CRI method and the ID of its subject. */
export interface Call {
  method: string;
  id?: string;
  /** Default: settings.requestTimeoutMs. */
  deadlineMs?: number;
  /** How long the runtime may wait before it responds, milliseconds, as in StopContainer; added to the deadline. Default 0. */
  waitsMs?: number;
}

// IDs have 64 characters in practice. Longer ones of a faulty runtime are truncated in messages.
const maxIdLength = 128;

// What an operator can do about a runtime that does not answer.
const idsByCode: Readonly<Partial<Record<ErrorCode, ErrorId>>> = {
  unavailable: "NK1403",
  deadline: "NK1404",
  exhausted: "NK1406",
};

/** Makes calls to the runtime with deadlines and metrics. Errors are NodekeeperErrors that name the call. */
export class RuntimeCalls {
  readonly #options: RuntimeCallsOptions;
  readonly #inFlight = new Set<CallInFlight>();

  constructor(options: RuntimeCallsOptions) {
    this.#options = options;
    const { metrics, clock } = options;
    metrics.oldestCallOf(() => {
      const oldest = new Map<string, number>();
      for (const { method, startedAt } of this.inFlight()) {
        const seconds = (clock.monotonic() - startedAt) / 1000;
        oldest.set(method, Math.max(seconds, oldest.get(method) ?? 0));
      }
      return oldest;
    });
  }

  /** Calls without a response; the event stream is not included. */
  inFlight(): readonly CallInFlight[] {
    const now = this.#options.clock.monotonic();
    return [...this.#inFlight].filter(({ startedAt }) => startedAt <= now);
  }

  /** Makes a unary call. */
  async ask<T>(
    call: Call,
    signal: AbortSignal,
    work: (client: RuntimeClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { connection, clock, metrics, settings } = this.#options;
    const { method, deadlineMs = settings.requestTimeoutMs, waitsMs = 0 } = call;
    const startedAt = clock.monotonic();
    const inFlight: CallInFlight = { method, id: call.id, startedAt: startedAt + waitsMs };
    this.#inFlight.add(inFlight);
    let result = "ok";
    metrics.callsInFlight.inc({ method });
    try {
      return await withDeadline(
        clock,
        waitsMs + deadlineMs,
        { name: nameOf(call), id: "NK1404" },
        signal,
        (callSignal) => work(connection.client, callSignal),
      );
    } catch (error) {
      const translated = this.#translate(call, error);
      result = codeOf(translated);
      throw translated;
    } finally {
      this.#inFlight.delete(inFlight);
      metrics.callsInFlight.dec({ method });
      metrics.callDuration.observe({ method, result }, (clock.monotonic() - startedAt) / 1000);
    }
  }

  /** Opens a server stream without a deadline. Flow control follows the consumer. */
  async *follow<T>(
    call: Call,
    signal: AbortSignal,
    open: (client: RuntimeClient, signal: AbortSignal) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const { connection, metrics } = this.#options;
    const { method } = call;
    using scope = childScope(signal);
    metrics.callsInFlight.inc({ method });
    try {
      yield* open(connection.client, scope.signal);
    } catch (error) {
      signal.throwIfAborted();
      throw this.#translate(call, error);
    } finally {
      metrics.callsInFlight.dec({ method });
      scope.abort();
    }
  }

  #translate(call: Call, failure: unknown): unknown {
    const error = fromGrpcError(failure);
    // Errors while the response was read.
    if (failure instanceof RangeError)
      return new NodekeeperError(
        "unavailable",
        `${nameOf(call)}: failed to read the response: ${failure.message}`,
        { id: "NK1407" },
      );
    if (!(error instanceof NodekeeperError) || error.message.startsWith(nameOf(call))) return failure;
    if (error === failure && error.code !== "exhausted") return failure;
    const limit = this.#options.settings.maxMessageBytes;
    const what = /larger than max/.test(error.message)
      ? `the response exceeds a size limit (runtime.maxMessageSize is ${limit} bytes): ${error.message}`
      : error.message;
    return new NodekeeperError(error.code, `${nameOf(call)}: ${what}`, {
      id: error.id ?? idsByCode[error.code],
    });
  }
}

function nameOf({ method, id }: Call): string {
  return id === undefined ? method : `${method} of ${id.slice(0, maxIdLength)}`;
}

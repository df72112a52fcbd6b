import {
  PodNotInspectable,
  RuntimeAnswerTooLarge,
  RuntimeNotResponding,
  RuntimeUnreachable,
} from "@nodekeeper/api/errors";
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
import type { RuntimeClient } from "./connection.ts";
import type { Connections, OpenedConnections } from "./connections.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import type { RuntimeSettings } from "./settings.ts";
import type { CallInFlight } from "./types.ts";

export interface RuntimeCallsOptions {
  connections: Connections;
  clock: Clock;
  metrics: RuntimeMetrics;
  settings: RuntimeSettings;
}

/** A call: the CRI method and the ID of its container or sandbox. */
export interface Call {
  method: string;
  id?: string;
  /** Default: settings.requestTimeout. */
  deadlineMs?: number;
  /**
   * How long the runtime may wait before it responds, in milliseconds, as in StopContainer. Added to the
   * deadline. Default: 0.
   */
  waitsMs?: number;
}

// IDs have 64 characters in practice. Longer IDs of a faulty runtime are truncated in messages.
const maxIdLength = 128;

// IDs of errors with a documented remedy, by the error code of the failed call.
const idsByCode: Readonly<Partial<Record<ErrorCode, ErrorId>>> = {
  unavailable: RuntimeUnreachable.id,
  deadline: RuntimeNotResponding.id,
  exhausted: RuntimeAnswerTooLarge.id,
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

  /**
   * Returns the calls that have not returned yet, except the event stream. StopContainer is included only
   * after its grace period.
   */
  inFlight(): readonly CallInFlight[] {
    const now = this.#options.clock.monotonic();
    return [...this.#inFlight].filter(({ startedAt }) => startedAt <= now);
  }

  /** Makes a unary call. */
  async ask<T>(
    call: Call,
    signal: AbortSignal,
    work: (client: RuntimeClient, signal: AbortSignal, connections: OpenedConnections) => Promise<T>,
  ): Promise<T> {
    const { connections, clock, metrics, settings } = this.#options;
    const { method, deadlineMs = settings.requestTimeout, waitsMs = 0 } = call;
    const opened = connections.opened ?? (await connections.open());
    const startedAt = clock.monotonic();
    const inFlight: CallInFlight = { method, id: call.id, startedAt: startedAt + waitsMs };
    this.#inFlight.add(inFlight);
    let result = "ok";
    metrics.callsInFlight.inc({ method });
    try {
      return await withDeadline(
        clock,
        { ms: waitsMs + deadlineMs, name: nameOf(call), id: RuntimeNotResponding.id },
        signal,
        (callSignal) => work(opened.calls.client, callSignal, opened),
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
    const { connections, metrics } = this.#options;
    const { method } = call;
    const { calls } = connections.opened ?? (await connections.open());
    using scope = childScope(signal);
    metrics.callsInFlight.inc({ method });
    try {
      yield* open(calls.client, scope.signal);
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
    // Errors while decoding the response.
    if (failure instanceof RangeError)
      return new PodNotInspectable({
        problem: `${nameOf(call)}: failed to read the response: ${failure.message}`,
      });
    if (!(error instanceof NodekeeperError) || error.message.startsWith(nameOf(call))) return failure;
    if (error === failure && error.code !== "exhausted") return failure;
    const limit = this.#options.settings.maxMessageSize;
    const what = /larger than/.test(error.message)
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

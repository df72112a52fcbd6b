import { decodeMessage, type MessageBounds, streamMessages } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  childScope,
  type Logger,
  messageOf,
  NodekeeperError,
  retryPolicies,
  type ScopedSignal,
  sleepOrAbort,
} from "@nodekeeper/core/lib";
import { pacedReports } from "./paced-reports.ts";

/** A stream of reports about a driver's devices, each with the whole state. */
export interface ReportStreamOptions<T> {
  driver: string;
  /** Name of the method in the driver's service. Its request has no fields. */
  method: string;
  /** What is watched, for the log: "the health of devices". */
  about: string;
  errorId: string;
  message: { decode: (bytes: Uint8Array) => T };
  bounds: MessageBounds;
  onReport: (report: T) => void;
  /** Called with what is wrong with a report that can't be decoded or is too large, before the stream fails. */
  onUnreadable: (problem: string) => void;
  /** Called when the stream failed, before it is opened again, and once it was ended by the signal. */
  onEnd: () => void;
  clock: Clock;
  log: Logger;
}

const MOST_BYTES = 16 * 1024 * 1024;

/** Follows a stream of a driver's reports, across its connections. */
export class ReportStream<T> {
  readonly #options: ReportStreamOptions<T>;
  /** Of the open stream. */
  #scope: ScopedSignal | undefined;
  /** Why the stream failed; undefined while it works. */
  problem: string | undefined;

  constructor(options: ReportStreamOptions<T>) {
    this.#options = options;
  }

  /**
   * Follows the stream of one connection until the signal aborts. A failed stream is reopened after 1 s to 1 min.
   * @param service full name of the driver's service
   */
  async follow(endpoint: string, service: string, signal: AbortSignal): Promise<void> {
    const { driver, about, errorId, onEnd, clock, log } = this.#options;
    const backoff = new Backoff(retryPolicies.driverReports);
    while (!signal.aborted) {
      try {
        await this.#followOnce(endpoint, service, signal, () => backoff.reset());
      } catch (error) {
        if (signal.aborted) return;
        onEnd();
        this.problem = messageOf(error);
        const retryInMs = Math.round(backoff.next());
        log.warn({ errorId, driver, err: error, retryInMs }, `failed to watch ${about}, retrying`);
        await sleepOrAbort(clock, retryInMs, signal);
      }
    }
  }

  /** Reopens the current connection's stream immediately, if it is open. Discards a received report that is pending. */
  reopen(): void {
    this.#scope?.abort();
  }

  // Returns if the stream is to be opened again at once, or the signal has aborted.
  async #followOnce(
    endpoint: string,
    service: string,
    signal: AbortSignal,
    onMessage: () => void,
  ): Promise<void> {
    const { method, onReport, onEnd, clock } = this.#options;
    const call = { method: `${service}/${method}`, request: new Uint8Array() };
    using scope = childScope(signal);
    this.#scope = scope;
    const stream = streamMessages(endpoint, call, { maxReceiveBytes: MOST_BYTES }, scope.signal);
    try {
      for await (const bytes of pacedReports(stream, clock)) {
        // The last report is yielded after an abort.
        if (scope.signal.aborted) return;
        const report = this.#decode(bytes);
        this.problem = undefined;
        onMessage();
        onReport(report);
      }
      throw new NodekeeperError("unavailable", "the driver ended the stream");
    } catch (error) {
      if (!scope.signal.aborted) throw error;
    } finally {
      if (this.#scope === scope) this.#scope = undefined;
      scope.abort();
      if (signal.aborted) onEnd();
    }
  }

  #decode(bytes: Uint8Array): T {
    const { message, bounds, onUnreadable } = this.#options;
    try {
      return decodeMessage(message, bytes, bounds);
    } catch (error) {
      onUnreadable(messageOf(error));
      throw error;
    }
  }
}

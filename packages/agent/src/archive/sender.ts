import { ArchiveRefused, ArchiveUnavailable } from "@nodekeeper/api/errors";
import {
  abortable,
  Backoff,
  type Clock,
  deadlineScope,
  type Logger,
  messageOf,
  retryPolicies,
  sleepOrAbort,
} from "@nodekeeper/core/lib";
import type { ArchiveMetrics } from "./metrics.ts";
import type { Delivery, OtlpRequest, Transport } from "./otlp/delivery.ts";
import type { Origin } from "./otlp/logs.ts";

/** A queue of items to send, oldest first. */
export interface SendQueue<Item> {
  /** Returns the next items that fit into a request, at most `most`. Undefined if there are none. */
  next(most: number): Promise<readonly Item[] | undefined>;
  /** Removes the first items that `next` returned, of which the collector refused so many. */
  done(count: number, refused: number): void;
  /** Drops the oldest items beyond the queue's bounds. Call it only between `done` and `next`. */
  trim(): void;
}

/** What a sender sends. */
export interface Sent<Item> {
  what: "records" | "traces";
  queue: SendQueue<Item>;
  encode(items: readonly Item[], origin: Origin): OtlpRequest;
  /** Whether items are dropped if the collector has no receiver for them. Otherwise they wait. */
  isOptional: boolean;
  /** Counts items that the collector accepted. */
  onAccepted(count: number): void;
  /** Counts items that the collector refused. */
  onRefused(count: number): void;
  /** Identifies an item in the log. */
  describe(item: Item): object;
}

export interface SenderOptions {
  transport: Transport;
  /** Returns what all records have in common. Rejects only with the signal's reason. */
  origin: (signal: AbortSignal) => Promise<Origin>;
  settings: { interval: number; timeout: number };
  metrics: ArchiveMetrics;
  clock: Clock;
  log: Logger;
}

const LONGEST_RETRY_AFTER_MS = 300_000;

/**
 * Sends the items of one queue to a collector.
 *
 * 1. An item is removed from the queue after the collector has accepted it.
 * 2. Requests are sent sequentially. While the collector is unavailable, they are retried with exponential backoff, in
 *    addition to the delay that it requests.
 * 3. A request that is refused or too large is split until the offending items are sent alone. These are dropped,
 *    counted and logged. The backoff also applies after each drop, until the collector accepts a request.
 */
export class Sender<Item> {
  readonly #sent: Sent<Item>;
  readonly #options: SenderOptions;
  readonly #backoff = new Backoff(retryPolicies.archive);
  /** The last error, and since when attempts have failed. Undefined if the last attempt did not fail. */
  #failure: { since: number; message: string } | undefined;
  #exportedAt: number | undefined;
  /** Monotonic milliseconds. */
  #trimmedAt = 0;
  /** Maximum number of items in the next request: halved when one is refused, doubled when one is accepted. */
  #most = Number.POSITIVE_INFINITY;

  constructor(sent: Sent<Item>, options: SenderOptions) {
    this.#sent = sent;
    this.#options = options;
  }

  /** Milliseconds since the epoch. Undefined if nothing was accepted yet. */
  get exportedAt(): number | undefined {
    return this.#exportedAt;
  }

  /**
   * The last error, and since when attempts have been failing, in milliseconds since the epoch. Undefined if the last
   * attempt did not fail.
   */
  get failure(): { since: number; message: string } | undefined {
    return this.#failure;
  }

  /**
   * Sends the queued items at each interval until the signal aborts. Never rejects: failures, including those of the
   * state database, are logged and retried.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#options;
    while (!signal.aborted) {
      await this.drain(signal).catch((error) => {
        if (!signal.aborted) this.#failed(messageOf(error));
      });
      await sleepOrAbort(clock, settings.interval, signal);
    }
  }

  /**
   * Sends items until the queue is empty. Rejects with the signal's reason or with an error of the state database.
   * @param isLast whether to return after the first failure or dropped item instead of continuing after a delay
   */
  async drain(signal: AbortSignal, isLast = false): Promise<void> {
    const { clock, settings } = this.#options;
    const { queue } = this.#sent;
    for (;;) {
      const items = await queue.next(this.#most);
      if (items === undefined) return;
      signal.throwIfAborted();
      const waitMs = await this.#send(items, signal);
      if (waitMs !== undefined && isLast) return;
      // Trims the queue after each failure and otherwise at most once per interval. This bounds its size on disk while
      // the collector is slow or unavailable.
      if (waitMs !== undefined) await sleepOrAbort(clock, this.#backoff.next(waitMs), signal);
      else if (clock.monotonic() - this.#trimmedAt < settings.interval) continue;
      this.#trimmedAt = clock.monotonic();
      queue.trim();
    }
  }

  // Sends one request. Returns undefined if the next one may follow immediately. Otherwise returns the delay that the
  // collector requested, in milliseconds, at most 5 min; 0 if it requested none. The backoff is added to it.
  async #send(items: readonly Item[], signal: AbortSignal): Promise<number | undefined> {
    const { queue, encode, isOptional, onAccepted, onRefused } = this.#sent;
    const about = await this.#options.origin(signal);
    const delivery = await this.#deliver(encode(items, about), signal);
    if (isFailure(delivery, isOptional)) {
      this.#failed(delivery.message);
      return delivery.kind === "unavailable" ? Math.min(delivery.retryAfterMs, LONGEST_RETRY_AFTER_MS) : 0;
    }
    this.#responded();
    if (delivery.kind === "accepted") {
      // A collector may count anything.
      const rejected = Math.min(Math.max(delivery.rejected, 0), items.length);
      onAccepted(items.length - rejected);
      if (rejected > 0) onRefused(rejected);
      if (rejected > 0 || delivery.message !== "") this.#report(delivery, items, rejected);
      this.#exportedAt = this.#options.clock.now();
      this.#backoff.reset();
      this.#most *= 2;
      queue.done(items.length, rejected);
      return undefined;
    }
    if (items.length > 1 && delivery.kind !== "unsupported") {
      this.#most = Math.ceil(items.length / 2);
      return undefined;
    }
    onRefused(items.length);
    this.#report(delivery, items, items.length);
    queue.done(items.length, items.length);
    return 0;
  }

  async #deliver(request: OtlpRequest, signal: AbortSignal): Promise<Delivery> {
    const { transport, clock, settings, metrics } = this.#options;
    using scope = deadlineScope(clock, { ms: settings.timeout, name: "collector" }, signal);
    const sending = abortable(transport.send(request, scope.signal), scope.signal);
    const delivery = await sending.catch((error): Delivery => {
      signal.throwIfAborted();
      return { kind: "unavailable", message: messageOf(error), retryAfterMs: 0 };
    });
    metrics.bytes.inc(request.body.length);
    if (delivery.kind !== "accepted") metrics.failures.inc({ reason: delivery.kind });
    return delivery;
  }

  #failed(message: string): void {
    const { clock, log } = this.#options;
    const { what } = this.#sent;
    if (this.#failure?.message !== message)
      log.warn({ errorId: ArchiveUnavailable.id, problem: message }, `failed to export ${what}, retrying`);
    this.#failure = { since: this.#failure?.since ?? clock.now(), message };
  }

  #responded(): void {
    if (this.#failure) this.#options.log.info({}, `${this.#sent.what} are exported again`);
    this.#failure = undefined;
  }

  #report({ message }: Delivery, items: readonly Item[], dropped: number): void {
    const { what, describe } = this.#sent;
    this.#options.log.error(
      {
        errorId: ArchiveRefused.id,
        problem: message,
        dropped,
        of: items.length,
        first: describe(items[0]!),
      },
      dropped === 0 ? `collector accepted ${what} with a warning` : `collector refused ${what}`,
    );
  }
}

function isFailure({ kind }: Delivery, isOptional: boolean): boolean {
  return kind === "unavailable" || kind === "denied" || (kind === "unsupported" && !isOptional);
}

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

/** What waits to be sent, oldest first. */
export interface SendQueue<Item> {
  /** Returns the next items that fit into a request, at most `most`. Undefined if there are none. */
  next(most: number): Promise<readonly Item[] | undefined>;
  /** Removes the first items that `next` returned. */
  done(count: number): void;
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
 * Sends what waits in one queue to a collector.
 *
 * 1. An item leaves the queue after the collector accepted it.
 * 2. Requests are sent one after the other. While the collector is unavailable, they are repeated with growing delays, and
 *    after the delay that it asks for.
 * 3. A request that is refused or too large is divided until the items that cause it are alone. These are dropped, counted
 *    and logged. While the collector accepts nothing in between, the delays grow as well.
 */
export class Sender<Item> {
  readonly #sent: Sent<Item>;
  readonly #options: SenderOptions;
  readonly #backoff = new Backoff(retryPolicies.archive);
  /** The last failure. Undefined if the collector responded to the last request. */
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

  /** Why the last request failed, and since when they do. Undefined if it did not. */
  get failure(): { since: number; message: string } | undefined {
    return this.#failure;
  }

  /** Sends what waits at each interval. A failure is reported and retried, also one of the state database. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#options;
    while (!signal.aborted) {
      await this.drain(signal).catch((error) => {
        if (!signal.aborted) this.#failed(messageOf(error));
      });
      await sleepOrAbort(clock, settings.interval, signal);
    }
  }

  /** Sends until nothing waits. Rejects with the signal's reason. @param isLast whether to give up after a failure */
  async drain(signal: AbortSignal, isLast = false): Promise<void> {
    const { clock, settings } = this.#options;
    const { queue } = this.#sent;
    for (;;) {
      const items = await queue.next(this.#most);
      if (items === undefined) return;
      signal.throwIfAborted();
      const waitMs = await this.#send(items, signal);
      if (waitMs !== undefined && isLast) return;
      // A collector that is slow, or that fails, costs a bounded part of the disk.
      if (waitMs !== undefined) await sleepOrAbort(clock, this.#backoff.next(waitMs), signal);
      else if (clock.monotonic() - this.#trimmedAt < settings.interval) continue;
      this.#trimmedAt = clock.monotonic();
      queue.trim();
    }
  }

  // Returns the least delay until the next request, which the collector may have asked for. Undefined for none.
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
      queue.done(items.length);
      return undefined;
    }
    if (items.length > 1 && delivery.kind !== "unsupported") {
      this.#most = Math.ceil(items.length / 2);
      return undefined;
    }
    onRefused(items.length);
    this.#report(delivery, items, items.length);
    queue.done(items.length);
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

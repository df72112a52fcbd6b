import { type Clock, WakeableSleep } from "@nodekeeper/core/lib";

/** Which plugin requests a round out of turn, and why. */
export interface RoundRequest {
  plugin: string;
  /** "memory is below its threshold"; may be empty. */
  reason: string;
}

/** Rounds that are requested start at least so long after each other, milliseconds. */
export const REQUESTED_ROUND_INTERVAL_MS = 1_000;

/**
 * When rounds start:
 * 1. A regular round starts one period after the start of the round before.
 * 2. A requested round starts at once, but not within a second of the start of another requested one: then when that
 *    second is over. However often a signal flaps, it starts at most one extra round a second.
 * 3. A request that comes while a round runs is served by another round, because this one may have asked already.
 */
export class RoundPacing {
  readonly #clock: Clock;
  readonly #sleep = new WakeableSleep();
  #request: RoundRequest | undefined;
  #requestedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Of several requests for one round the first is kept. */
  request(request: RoundRequest): void {
    this.#request ??= request;
    this.#sleep.wake();
  }

  /**
   * Waits for the start of the next round, for one turn of the event loop at least. @param regularAt when it starts
   * without a request, monotonic. Returns the request that it serves, undefined for a regular round. Throws the
   * signal's reason.
   */
  async next(regularAt: number, signal: AbortSignal): Promise<RoundRequest | undefined> {
    for (;;) {
      this.#sleep.clear();
      const isRegular = regularAt <= this.#servedAt();
      const waitMs = Math.min(regularAt, this.#servedAt()) - this.#clock.monotonic();
      // A wake-up changes what is due; a sleep that ends by itself has reached it.
      if (await this.#sleep.wait(this.#clock, Math.max(waitMs, 0), signal)) continue;
      const request = this.#request;
      this.#request = undefined;
      if (isRegular) return undefined;
      this.#requestedAt = this.#clock.monotonic();
      return request;
    }
  }

  // When a request may be served; never without one.
  #servedAt(): number {
    if (!this.#request) return Number.POSITIVE_INFINITY;
    return this.#requestedAt + REQUESTED_ROUND_INTERVAL_MS;
  }
}

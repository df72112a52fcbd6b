import { type Clock, WakeableSleep } from "@nodekeeper/core/lib";

/** A plugin's request for a round out of turn. */
export interface RoundRequest {
  plugin: string;
  /** For example "crossed: free memory"; may be empty. */
  reason: string;
}

/** Minimum time between the starts of two requested rounds, milliseconds. */
export const REQUESTED_ROUND_INTERVAL_MS = 1_000;

/**
 * Decides when rounds start: queues requests for rounds for the manager, which runs them.
 *
 * 1. A regular round starts one period after the start of the previous round.
 * 2. A requested round starts immediately, but at least one second after the start of the previous requested round.
 * 3. A request during a round starts another round, because the running one may have called the plugin already.
 */
export class RoundPacing {
  readonly #clock: Clock;
  readonly #isOn: () => boolean;
  readonly #sleep = new WakeableSleep();
  #request: RoundRequest | undefined;
  #requestedAt = Number.NEGATIVE_INFINITY;

  /** @param isOn whether plugins may request rounds; if false, requests are ignored */
  constructor(clock: Clock, isOn: () => boolean = () => true) {
    this.#clock = clock;
    this.#isOn = isOn;
  }

  /** Requests a round. If several requests are pending, the first is kept. */
  request(request: RoundRequest): void {
    if (!this.#isOn()) return;
    this.#request ??= request;
    this.#sleep.wake();
  }

  /**
   * Waits until the next round starts, for at least one turn of the event loop. Returns the request that the round
   * serves; undefined for a regular round. Throws the signal's reason.
   * @param regularAt when the next regular round starts, monotonic milliseconds
   */
  async next(regularAt: number, signal: AbortSignal): Promise<RoundRequest | undefined> {
    for (;;) {
      this.#sleep.clear();
      const isRegular = regularAt <= this.#servedAt();
      const waitMs = Math.min(regularAt, this.#servedAt()) - this.#clock.monotonic();
      // Recomputes the time after a wake-up.
      if (await this.#sleep.wait(this.#clock, Math.max(waitMs, 0), signal)) continue;
      const request = this.#request;
      this.#request = undefined;
      if (isRegular) return undefined;
      this.#requestedAt = this.#clock.monotonic();
      return request;
    }
  }

  // Returns when the pending request may be served; infinity if there is none.
  #servedAt(): number {
    if (!this.#request) return Number.POSITIVE_INFINITY;
    return this.#requestedAt + REQUESTED_ROUND_INTERVAL_MS;
  }
}

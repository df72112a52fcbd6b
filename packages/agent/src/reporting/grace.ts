import type { Clock } from "@nodekeeper/core/lib";
import type { Endpoint } from "./endpoint.ts";

/** How long what a lost plugin said is kept. */
export class Grace {
  readonly #clock: Clock;
  readonly #periodMs: () => number;
  readonly #onEnd: (endpoint: Endpoint) => void;

  /** @param periodMs the grace period, read anew for each use, milliseconds */
  constructor(clock: Clock, periodMs: () => number, onEnd: (endpoint: Endpoint) => void) {
    this.#clock = clock;
    this.#periodMs = periodMs;
    this.#onEnd = onEnd;
  }

  /** @param stoppedFor how long it has been lost already; its grace ends `atLeast` this much later; milliseconds */
  begin(endpoint: Endpoint, stoppedFor: number, atLeast: number): void {
    endpoint.stoppedAt = this.#clock.now() - stoppedFor;
    endpoint.graceFrom = this.#clock.monotonic() - stoppedFor;
    this.arm(endpoint, atLeast);
  }

  /** Takes the period as it is now. */
  arm(endpoint: Endpoint, atLeast = 0): void {
    endpoint.grace?.cancel();
    const left = endpoint.graceFrom + this.#periodMs() - this.#clock.monotonic();
    endpoint.grace = this.#clock.after(Math.max(left, atLeast), () => this.#onEnd(endpoint));
  }

  /** The plugin is back. */
  cancel(endpoint: Endpoint): void {
    endpoint.grace?.cancel();
    endpoint.stoppedAt = undefined;
    endpoint.lostReason = undefined;
  }
}

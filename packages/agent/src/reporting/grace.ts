import type { Clock } from "@nodekeeper/core/lib";
import type { Endpoint } from "./endpoint.ts";

/** Grace periods of lost plugins, during which their last content stays published. */
export class Grace {
  readonly #clock: Clock;
  readonly #periodMs: () => number;
  readonly #onEnd: (endpoint: Endpoint) => void;

  /** @param periodMs returns the grace period in milliseconds; called on each use */
  constructor(clock: Clock, periodMs: () => number, onEnd: (endpoint: Endpoint) => void) {
    this.#clock = clock;
    this.#periodMs = periodMs;
    this.#onEnd = onEnd;
  }

  /**
   * Starts a plugin's grace period.
   * @param stoppedFor how long the plugin has already been lost, milliseconds
   * @param atLeast minimum remaining time, milliseconds
   */
  begin(endpoint: Endpoint, stoppedFor: number, atLeast: number): void {
    endpoint.stoppedAt = this.#clock.now() - stoppedFor;
    endpoint.graceFrom = this.#clock.monotonic() - stoppedFor;
    this.arm(endpoint, atLeast);
  }

  /** Restarts the timer with the current period. */
  arm(endpoint: Endpoint, atLeast = 0): void {
    endpoint.grace?.cancel();
    const left = endpoint.graceFrom + this.#periodMs() - this.#clock.monotonic();
    endpoint.grace = this.#clock.after(Math.max(left, atLeast), () => this.#onEnd(endpoint));
  }

  /** Ends the grace period of a plugin that registered again. */
  cancel(endpoint: Endpoint): void {
    endpoint.grace?.cancel();
    endpoint.stoppedAt = undefined;
    endpoint.lostReason = undefined;
  }
}

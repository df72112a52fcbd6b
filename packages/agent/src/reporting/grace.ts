import type { Clock } from "@nodekeeper/core/lib";
import type { Endpoint } from "./endpoint.ts";

/** Grace periods of lost plugins, during which their last content remains published. */
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
   * @param stoppedFor time since the plugin was lost, in milliseconds
   * @param atLeast minimum remaining time, in milliseconds
   */
  begin(endpoint: Endpoint, stoppedFor: number, atLeast: number): void {
    endpoint.stoppedAt = this.#clock.now() - stoppedFor;
    const now = this.#clock.monotonic();
    endpoint.graceFrom = now - stoppedFor;
    endpoint.graceNotBefore = now + atLeast;
    this.arm(endpoint);
  }

  /** Restarts the timer with the current period. The minimum passed to `begin` remains in effect. */
  arm(endpoint: Endpoint): void {
    endpoint.grace?.cancel();
    const end = Math.max(endpoint.graceFrom + this.#periodMs(), endpoint.graceNotBefore);
    endpoint.grace = this.#clock.after(end - this.#clock.monotonic(), () => this.#onEnd(endpoint));
  }

  /** Cancels the grace period of a plugin that registered again. */
  cancel(endpoint: Endpoint): void {
    endpoint.grace?.cancel();
    endpoint.stoppedAt = undefined;
    endpoint.lostReason = undefined;
  }
}

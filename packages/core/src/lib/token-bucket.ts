import type { Clock } from "./clock.ts";
import { NodekeeperError } from "./errors.ts";

export interface TokenBucketOptions {
  /** Tokens that come back each second, above 0. */
  perSecond: number;
  /** The most tokens available at once, at least 1. */
  burst: number;
}

/** A token bucket: `burst` at once, then `perSecond`. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #options: TokenBucketOptions;
  // Below zero: so many callers wait for tokens.
  #tokens: number;
  #filledAt: number;

  constructor(clock: Clock, options: TokenBucketOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#tokens = options.burst;
    this.#filledAt = clock.monotonic();
  }

  /** Takes a token if one is available. */
  tryTake(): boolean {
    this.#fill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /**
   * Takes a token, waiting for its turn; callers are served in order. Returns the time waited, milliseconds.
   * Throws `throttled` at once when the turn would come later than `longestMs`; rejects with the signal's reason.
   */
  async take(longestMs: number, signal?: AbortSignal): Promise<number> {
    this.#fill();
    const waitMs = Math.max(((1 - this.#tokens) / this.#options.perSecond) * 1000, 0);
    if (waitMs > longestMs) {
      const message = `our own limit of ${this.#options.perSecond} requests a second is used up for the next ${Math.ceil(waitMs)} ms`;
      throw new NodekeeperError("throttled", message, { retryAfterMs: Math.ceil(waitMs) });
    }
    this.#tokens -= 1;
    if (waitMs === 0) return 0;
    try {
      await this.#clock.sleep(waitMs, signal);
    } catch (error) {
      this.#tokens += 1;
      throw error;
    }
    return waitMs;
  }

  /** Reserves a token; returns the time until it is available, milliseconds, 0 when it is available now. */
  reserve(): number {
    this.#fill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#options.perSecond) * 1000;
  }

  #fill(): void {
    const now = this.#clock.monotonic();
    const gained = ((now - this.#filledAt) / 1000) * this.#options.perSecond;
    this.#tokens = Math.min(this.#tokens + gained, this.#options.burst);
    this.#filledAt = now;
  }
}

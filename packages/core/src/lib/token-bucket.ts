import { NodekeeperError } from "@nodekeeper/api/errors";
import type { Clock } from "./clock.ts";

interface TokenBucketOptions {
  /** Tokens added per second; greater than 0. */
  perSecond: number;
  /** Maximum number of tokens; at least 1. */
  burst: number;
}

/** A token bucket: a burst, then `perSecond`. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #options: TokenBucketOptions;
  // If negative, the number of tokens owed to waiting callers.
  #tokens: number;
  #filledAt: number;

  constructor(clock: Clock, options: TokenBucketOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#tokens = options.burst;
    this.#filledAt = clock.monotonic();
  }

  /** Takes tokens, by default one, if they are available. Returns whether they were. */
  tryTake(tokens = 1): boolean {
    this.#fill();
    if (this.#tokens < tokens) return false;
    this.#tokens -= tokens;
    return true;
  }

  /**
   * Waits for a token and takes it. Callers are served in order. Returns the waiting time in milliseconds. Rejects with
   * `throttled` immediately if the wait would exceed `longestMs`, and with the signal's reason.
   */
  async take(longestMs: number, signal?: AbortSignal): Promise<number> {
    this.#fill();
    const waitMs = Math.max(((1 - this.#tokens) / this.#options.perSecond) * 1000, 0);
    if (waitMs > longestMs) {
      const retryAfterMs = Math.ceil(waitMs);
      const message = `client-side rate limit of ${this.#options.perSecond} requests/s exceeded, retry after ${retryAfterMs} ms`;
      throw new NodekeeperError("throttled", message, { retryAfterMs });
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

  #fill(): void {
    const now = this.#clock.monotonic();
    const gained = ((now - this.#filledAt) / 1000) * this.#options.perSecond;
    this.#tokens = Math.min(this.#tokens + gained, this.#options.burst);
    this.#filledAt = now;
  }
}

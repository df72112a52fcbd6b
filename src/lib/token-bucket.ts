import type { Clock } from "./clock.ts";

export interface TokenBucketOptions {
  /** Tokens a second, above 0. */
  perSecond: number;
  /** How many tokens a full bucket holds; it begins full. */
  burst: number;
}

/** Hands out tokens ahead of time: each `reserve` takes one and says how long to wait until it is there. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #options: TokenBucketOptions;
  #tokens: number;
  #counted: number;

  constructor(clock: Clock, options: TokenBucketOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#tokens = options.burst;
    this.#counted = clock.monotonic();
  }

  /** Takes a token; gives the wait for it, milliseconds, 0 when it is there. */
  reserve(): number {
    const { perSecond, burst } = this.#options;
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(burst, this.#tokens + ((now - this.#counted) / 1000) * perSecond);
    this.#counted = now;
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / perSecond) * 1000;
  }
}

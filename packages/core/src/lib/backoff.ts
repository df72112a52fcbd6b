/** Delays in milliseconds: start at `baseMs`, multiply by `factor` (default 2), up to `maxMs`. */
export interface BackoffOptions {
  baseMs: number;
  maxMs: number;
  factor?: number;
  /** Fraction from 0 to 1 by which delays vary. The default of 0.2 spreads each delay by plus or minus 20 %. */
  jitter?: number;
  /**
   * Replaces `jitter` for requests that all nodes of a cluster retry against one server. Each length of delay is used
   * twice: first a random fraction of it, then all of it. Afterwards, `maxMs` is repeated. Clients that failed
   * simultaneously are thereby spread evenly over the delay and remain spread. When the server recovers, it receives
   * less than three times the mean rate of requests in its first seconds, regardless of how long it was unavailable.
   */
  isOfFleet?: boolean;
  /**
   * Whether the first retry has no delay and the second one `baseMs`. For operations that usually succeed immediately.
   */
  isFirstImmediate?: boolean;
  random?: () => number;
}

/** Exponential backoff for one operation that is retried. */
export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** Number of calls of `next` since the last reset. */
  get failures(): number {
    return this.#failures;
  }

  /**
   * Returns the delay before the next attempt, in milliseconds: base, then base x factor, and so on up to max, with
   * jitter. With `isFirstImmediate`, the first delay is 0.
   * @param retryAfterMs added to the delay, so that clients with the same Retry-After do not return simultaneously
   */
  next(retryAfterMs = 0): number {
    return retryAfterMs + delayAfter(this.#failures++, this.#options);
  }

  /** Call after a success. */
  reset(): void {
    this.#failures = 0;
  }
}

/** Returns the delay after `failures` earlier failures, in milliseconds. Never exceeds max, including jitter. */
export function delayAfter(failures: number, options: BackoffOptions): number {
  const { baseMs, maxMs, factor = 2, jitter = 0.2, random = Math.random } = options;
  const { isOfFleet = false, isFirstImmediate = false } = options;
  if (isFirstImmediate && failures === 0) return 0;
  if (isFirstImmediate) return delayAfter(failures - 1, { ...options, isFirstImmediate: false });
  const plain = (steps: number) => Math.min(baseMs * factor ** Math.min(steps, 64), maxMs);
  if (isOfFleet) {
    const delay = plain(Math.floor(failures / 2));
    const isFirst = failures === 0 || plain(Math.floor((failures - 1) / 2)) !== delay;
    return isFirst ? delay * random() : delay;
  }
  const least = plain(failures) * (1 - jitter);
  // Drawn from the range below max. If delays were truncated to max, half of them would be equal.
  const most = Math.min(plain(failures) * (1 + jitter), maxMs);
  return least + (most - least) * random();
}

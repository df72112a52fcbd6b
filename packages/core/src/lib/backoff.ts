/** Delays in milliseconds: from `baseMs`, multiplied by `factor`, 2 by default, up to `maxMs`. */
export interface BackoffOptions {
  baseMs: number;
  maxMs: number;
  factor?: number;
  /** 0.2, the default, spreads each delay over plus or minus 20 %. A number from 0 to 1. */
  jitter?: number;
  /**
   * For what all nodes of a cluster retry at the same server, in place of `jitter`: of delays of the same length the first
   * is a random part of it, the others the whole, and each length is used twice. Clients that failed at one moment are then
   * spread evenly over the delay, and stay so: however long the server was unavailable, less than three times the mean
   * rate of requests meets it in its first seconds.
   */
  isOfFleet?: boolean;
  /** The first try has no delay, the second one `baseMs`: for what usually works again at once. */
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

  /** How often `next` was called since the last reset. */
  get failures(): number {
    return this.#failures;
  }

  /**
   * The delay before the next try, milliseconds: base, then base x factor, and so on up to max, jittered; with
   * `isFirstImmediate` 0 comes before base.
   * @param retryAfterMs is added: clients with the same Retry-After must not come back together
   */
  next(retryAfterMs = 0): number {
    return retryAfterMs + delayAfter(this.#failures++, this.#options);
  }

  /** Call after a success. */
  reset(): void {
    this.#failures = 0;
  }
}

/** The delay after `failures` failures before this one, milliseconds. Never above max, jitter included. */
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
  // Drawn from what is left below max: cut off there, half of the delays would be the same.
  const most = Math.min(plain(failures) * (1 + jitter), maxMs);
  return least + (most - least) * random();
}

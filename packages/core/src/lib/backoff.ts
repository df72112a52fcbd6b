/** Delays in milliseconds. `jitter` 0.2 spreads each delay over plus or minus 20 %. */
export interface BackoffOptions {
  baseMs: number;
  maxMs: number;
  factor?: number;
  jitter?: number;
  random?: () => number;
}

/** Exponential backoff for one operation that is retried. */
export class Backoff {
  readonly #options: Required<BackoffOptions>;
  #failures = 0;

  constructor(options: BackoffOptions) {
    this.#options = { factor: 2, jitter: 0.2, random: Math.random, ...options };
  }

  /** How often `next` was called since the last reset. */
  get failures(): number {
    return this.#failures;
  }

  /** The delay before the next try, milliseconds: base, then base x factor, and so on up to max, jittered. */
  next(): number {
    return delayAfter(this.#failures++, this.#options);
  }

  /** Call after a success. */
  reset(): void {
    this.#failures = 0;
  }
}

/** The delay after `failures` failures before this one, milliseconds. Never above max, jitter included. */
export function delayAfter(failures: number, options: BackoffOptions): number {
  const { baseMs, maxMs, factor = 2, jitter = 0.2, random = Math.random } = options;
  const plain = Math.min(baseMs * factor ** Math.min(failures, 64), maxMs);
  const spread = plain * jitter * (random() * 2 - 1);
  return Math.min(plain + spread, maxMs);
}

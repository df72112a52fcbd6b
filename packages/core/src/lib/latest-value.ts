import { abortable } from "./abort.ts";

/** A value with its sequence number. */
export interface Numbered<T> {
  number: number;
  value: T;
}

/**
 * Holds the latest value. Slow readers skip intermediate values but always receive the latest. A failure is also given
 * to each reader once, after the values before it, unless a newer value replaces it.
 */
export class LatestValue<T> {
  #current: Numbered<T> | undefined;
  #failure: Numbered<unknown> | undefined;
  #number = 0;
  #taken = 0;
  // Not one promise for all readers: an aborted wait would leave its reaction on it until the next value.
  readonly #waiting = new Set<() => void>();

  /** The error since which there was no value. Undefined if there is none. */
  get failure(): Numbered<unknown> | undefined {
    return this.#failure;
  }

  set(value: T): void {
    this.#current = { number: ++this.#number, value };
    this.#failure = undefined;
    this.#wake();
  }

  /** Rejects the calls that wait for a value, and later ones that have the latest value. */
  fail(error: unknown): void {
    this.#failure = { number: ++this.#number, value: error };
    this.#wake();
  }

  /**
   * Returns the latest value that `take` has not returned yet, waiting if necessary. Rejects with the signal's reason.
   */
  async take(signal: AbortSignal): Promise<T> {
    const { number, value } = await this.after(this.#taken, signal);
    this.#taken = number;
    return value;
  }

  /**
   * Returns the latest value if its number is above `seen`; otherwise waits for a newer one. Rejects with the failure
   * if its number is above `seen` and there is no such value, and with the signal's reason if the signal aborts.
   */
  async after(seen: number, signal: AbortSignal): Promise<Numbered<T>> {
    for (;;) {
      if (this.#current && this.#current.number > seen) return this.#current;
      if (this.#failure && this.#failure.number > seen) throw this.#failure.value;
      await this.#next(signal);
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  async #next(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await abortable(promise, signal);
    } finally {
      this.#waiting.delete(resolve);
    }
  }
}

import { abortable } from "./abort.ts";

/** A value with its sequence number. */
export interface Numbered<T> {
  number: number;
  value: T;
}

/** Holds the latest value. Slow readers skip intermediate values but always receive the latest. */
export class LatestValue<T> {
  #current: Numbered<T> | undefined;
  #taken = 0;
  // Not one promise for all readers: an aborted wait would leave its reaction on it until the next value.
  readonly #waiting = new Set<() => void>();

  set(value: T): void {
    this.#current = { number: (this.#current?.number ?? 0) + 1, value };
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /**
   * Returns the latest value that `take` has not returned yet, waiting if necessary. Rejects with the signal's reason.
   */
  async take(signal: AbortSignal): Promise<T> {
    const { number, value } = await this.after(this.#taken, signal);
    this.#taken = number;
    return value;
  }

  /** Returns the latest value with a number above `seen`, waiting if necessary. Rejects with the signal's reason. */
  async after(seen: number, signal: AbortSignal): Promise<Numbered<T>> {
    while (!this.#current || this.#current.number <= seen) await this.#next(signal);
    return this.#current;
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

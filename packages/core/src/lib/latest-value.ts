import { abortable } from "./abort.ts";

/** A value with its number; numbers only grow. */
export interface Numbered<T> {
  number: number;
  value: T;
}

/** Holds the newest value. Readers who are slow skip values in between; the newest always reaches them. */
export class LatestValue<T> {
  #current: Numbered<T> | undefined;
  #taken = 0;
  #next = Promise.withResolvers<void>();

  set(value: T): void {
    this.#current = { number: (this.#current?.number ?? 0) + 1, value };
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }

  /** The newest value that no call of this has given yet; waits for one. Rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<T> {
    const { number, value } = await this.after(this.#taken, signal);
    this.#taken = number;
    return value;
  }

  /** The newest value with a number above `seen`; waits for one. Rejects with the signal's reason. */
  async after(seen: number, signal: AbortSignal): Promise<Numbered<T>> {
    while (!this.#current || this.#current.number <= seen) await abortable(this.#next.promise, signal);
    return this.#current;
  }
}

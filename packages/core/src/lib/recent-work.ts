import type { Clock } from "./clock.ts";
import { SharedWork } from "./shared-work.ts";

/**
 * Runs work once per period for all callers and reuses its result. The work must have its own deadline, because it is
 * not aborted with its callers. Errors are not cached.
 */
export class RecentWork<T> {
  readonly #clock: Clock;
  readonly #maxAgeMs: () => number;
  readonly #work: SharedWork<T>;
  #last: { result: T; startedAt: number } | undefined;

  /** @param maxAgeMs returns how long a result is reused after the start of the work, in milliseconds */
  constructor(clock: Clock, maxAgeMs: () => number, work: () => Promise<T>) {
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs;
    this.#work = new SharedWork(() => this.#start(work), { outlivesCallers: true });
  }

  /** Rejects like the work, or with the signal's reason. */
  async get(signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#last && this.#clock.monotonic() - this.#last.startedAt <= this.#maxAgeMs()) {
      return this.#last.result;
    }
    return await this.#work.join(signal);
  }

  /** Discards the last result. The next call does the work again. */
  expire(): void {
    this.#last = undefined;
  }

  async #start(work: () => Promise<T>): Promise<T> {
    const startedAt = this.#clock.monotonic();
    const result = await work();
    this.#last = { result, startedAt };
    return result;
  }
}

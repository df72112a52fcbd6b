import { type Clock, SharedWork } from "@nodekeeper/core/lib";
import type { Reading } from "./reading.ts";

/**
 * Reads a source once per period for all callers. Failures are cached like values, so that callers do not repeat reads
 * of a source that hangs. The reading has its own deadline. An aborted caller does not affect the others.
 */
export class SharedReading<T> {
  readonly #clock: Clock;
  readonly #maxAgeMs: () => number;
  readonly #work: SharedWork<Reading<T>>;
  #last: { reading: Reading<T>; startedAt: number } | undefined;

  /** @param maxAgeMs returns how long a reading is reused, in milliseconds */
  constructor(clock: Clock, maxAgeMs: () => number, read: () => Promise<Reading<T>>) {
    this.#clock = clock;
    this.#maxAgeMs = maxAgeMs;
    this.#work = new SharedWork(() => this.#start(read), { outlivesCallers: true });
  }

  /** Throws only the signal's reason. */
  async get(signal: AbortSignal): Promise<Reading<T>> {
    signal.throwIfAborted();
    if (this.#last && this.#clock.monotonic() - this.#last.startedAt <= this.#maxAgeMs()) {
      return this.#last.reading;
    }
    return await this.#work.join(signal);
  }

  /** Discards the last reading. The next call reads the source again. */
  expire(): void {
    this.#last = undefined;
  }

  async #start(read: () => Promise<Reading<T>>): Promise<Reading<T>> {
    const startedAt = this.#clock.monotonic();
    const reading = await read();
    this.#last = { reading, startedAt };
    return reading;
  }
}

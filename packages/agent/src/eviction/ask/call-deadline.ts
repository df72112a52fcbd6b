// From this number of exceeded deadlines in a row on the deadline is shorter.
const MISSES = 3;
// The shorter deadline, milliseconds.
const SHORTER_MS = 1_000;
// How often the whole deadline is given again while it is shorter, milliseconds.
const WHOLE_EVERY_MS = 60_000;

/**
 * The deadline of one method of one plugin, so that a plugin that hangs does not delay each round by a whole deadline.
 *
 * 1. It is the configured one until three deadlines in a row were exceeded.
 * 2. From then on it is 1 s, or the configured one if that is shorter, and once a minute the configured one.
 * 3. One answer in time, also an error, restores the configured one.
 */
export class CallDeadline {
  #misses = 0;
  /** Monotonic time of the last call with the whole deadline. */
  #wholeAt = Number.NEGATIVE_INFINITY;

  /** The deadline of a call that starts now, milliseconds. @param now monotonic */
  next(configuredMs: number, now: number): number {
    if (this.#misses >= MISSES && now - this.#wholeAt < WHOLE_EVERY_MS)
      return Math.min(SHORTER_MS, configuredMs);
    this.#wholeAt = now;
    return configuredMs;
  }

  /** Notes that a call exceeded its deadline. */
  missed(): void {
    this.#misses++;
  }

  /** Notes that a call ended within its deadline. */
  kept(): void {
    this.#misses = 0;
  }
}

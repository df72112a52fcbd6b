// From this number of exceeded deadlines in a row on the deadline is shorter.
const MISSES = 3;
// Lower bound of the shorter deadline, milliseconds.
const SHORTEST_MS = 1_000;
// The answers in time from which the shorter deadline is learned.
const REMEMBERED_ANSWERS = 8;
// How often the whole deadline is given again while it is shorter, milliseconds.
const WHOLE_EVERY_MS = 60_000;

/**
 * The deadline of one method of one plugin, so that a plugin that hangs does not delay each round by a whole deadline.
 *
 * 1. It is the configured one until three deadlines in a row were exceeded.
 * 2. From then on it is twice the longest of the last eight answers in time, at least 1 s and at most the configured one,
 *    and once a minute the configured one.
 * 3. One answer in time, also an error, restores the configured one.
 */
export class CallDeadline {
  #misses = 0;
  /** Durations of the last answers in time, milliseconds, oldest first. */
  readonly #durations: number[] = [];
  /** Monotonic time of the last call with the whole deadline. */
  #wholeAt = Number.NEGATIVE_INFINITY;

  /** The deadline of a call that starts now, milliseconds. @param now monotonic */
  next(configuredMs: number, now: number): number {
    if (this.#misses >= MISSES && now - this.#wholeAt < WHOLE_EVERY_MS) {
      return Math.min(Math.max(SHORTEST_MS, ...this.#durations.map((ms) => 2 * ms)), configuredMs);
    }
    this.#wholeAt = now;
    return configuredMs;
  }

  /** Notes that a call exceeded its deadline. */
  missed(): void {
    this.#misses++;
  }

  /** Notes that a call ended within its deadline. @param ms how long it took */
  kept(ms: number): void {
    this.#misses = 0;
    this.#durations.push(ms);
    if (this.#durations.length > REMEMBERED_ANSWERS) this.#durations.shift();
  }
}

// The number of consecutive missed deadlines after which the deadline is reduced.
const MISSES = 3;
// Lower bound of the reduced deadline, milliseconds.
const SHORTEST_MS = 1_000;
// The number of timely answers from which the reduced deadline is computed.
const REMEMBERED_ANSWERS = 8;
// How often the configured deadline applies while the deadline is reduced, milliseconds.
const WHOLE_EVERY_MS = 60_000;

/**
 * The deadline of one method of one plugin. A plugin that hangs must not delay each round by the configured deadline.
 *
 * 1. It is the configured one until three consecutive deadlines were missed.
 * 2. After that it is twice the longest of the last eight timely answers, at least 1 s and at most the configured one;
 *    once a minute it is the configured one.
 * 3. One timely answer, even an error, restores the configured one.
 */
export class CallDeadline {
  #misses = 0;
  /** Durations of the last timely answers, milliseconds, oldest first. */
  readonly #durations: number[] = [];
  /** Monotonic time of the last call with the configured deadline. */
  #wholeAt = Number.NEGATIVE_INFINITY;

  /** Returns the deadline of a call that starts now, milliseconds. @param now monotonic */
  next(configuredMs: number, now: number): number {
    if (this.#misses >= MISSES && now - this.#wholeAt < WHOLE_EVERY_MS) {
      return Math.min(Math.max(SHORTEST_MS, ...this.#durations.map((ms) => 2 * ms)), configuredMs);
    }
    this.#wholeAt = now;
    return configuredMs;
  }

  /** Records that a call exceeded its deadline. */
  missed(): void {
    this.#misses++;
  }

  /** Records that a call ended within its deadline. @param ms duration of the call */
  kept(ms: number): void {
    this.#misses = 0;
    this.#durations.push(ms);
    if (this.#durations.length > REMEMBERED_ANSWERS) this.#durations.shift();
  }
}

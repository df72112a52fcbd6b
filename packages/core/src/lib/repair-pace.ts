import { delayAfter } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import type { RetryPolicy } from "./retry.ts";

// A client that leaves alone for so long what was put back has given up, milliseconds.
const MEMORY_MS = 300_000;
// From so many repairs in a row on, two clients disagree.
const MANY = 5;

/** How fast that is put back which another client changes of ours: the first time at once, then ever more slowly. */
export class RepairPace {
  readonly #clock: Clock;
  readonly #policy: RetryPolicy & { random?: () => number };
  #repairs = 0;
  /** Monotonic: when the last repair was due. */
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, policy: RetryPolicy & { random?: () => number }) {
    this.#clock = clock;
    this.#policy = policy;
  }

  /** How long the next repair has to wait, milliseconds. */
  get delayMs(): number {
    return this.#isOver || this.#repairs === 0 ? 0 : delayAfter(this.#repairs, this.#policy);
  }

  /** Counts a repair that is made in `inMs`. */
  count(inMs = 0): void {
    this.#repairs = this.#isOver ? 1 : this.#repairs + 1;
    this.#lastAt = this.#clock.monotonic() + inMs;
  }

  /** Counts a repair and returns how long it has to wait, milliseconds. */
  next(): number {
    const { delayMs } = this;
    this.count(delayMs);
    return delayMs;
  }

  /** How often it was put back while another client continues to change it; undefined where none does. */
  get conflicts(): number | undefined {
    return this.#isOver || this.#repairs < MANY ? undefined : this.#repairs;
  }

  get #isOver(): boolean {
    return this.#clock.monotonic() - this.#lastAt > MEMORY_MS;
  }
}

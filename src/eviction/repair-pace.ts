import { Backoff, type Clock } from "../lib/index.ts";

// A client that changes what is ours again within the memory is answered ever more slowly, milliseconds.
const BACKOFF = { baseMs: 500, maxMs: 30_000 };
const MEMORY_MS = 300_000;
// From so many repairs in a row on, two clients disagree.
const MANY = 5;

/** How fast that is put back which another client changes of ours: the first time at once, then ever more slowly. */
export class RepairPace {
  readonly #clock: Clock;
  readonly #backoff = new Backoff(BACKOFF);
  /** Monotonic: when the last repair was due. */
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a repair and returns how long it has to wait, milliseconds. */
  next(): number {
    if (this.#isOver) this.#backoff.reset();
    const isFirst = this.#backoff.failures === 0;
    const delay = isFirst ? 0 : this.#backoff.next();
    if (isFirst) this.#backoff.next();
    this.#lastAt = this.#clock.monotonic() + delay;
    return delay;
  }

  /** How often it was put back while another client goes on changing it; undefined where none does. */
  get conflicts(): number | undefined {
    return this.#isOver || this.#backoff.failures < MANY ? undefined : this.#backoff.failures;
  }

  get #isOver(): boolean {
    return this.#clock.monotonic() - this.#lastAt > MEMORY_MS;
  }
}

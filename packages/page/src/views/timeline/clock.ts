const SAMPLES = 8;
const TOLERATED_MS = 3_000;

/**
 * The wall clock of the node, as far as messages show it: where the browser's clock is another machine's and differs
 * by more than three seconds, the axis would end in the past or the future.
 */
export class NodeClock {
  readonly #now: () => number;
  #samples: number[] = [];
  #last: number | undefined;

  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /** Takes the time of the newest message, when it comes: it was made shortly before. */
  take(at: number | undefined): void {
    if (at === undefined || at === this.#last) return;
    this.#last = at;
    this.#samples = [...this.#samples, at - this.#now()].slice(-SAMPLES);
  }

  /** How far the node's clock is ahead of the browser's, milliseconds; 0 where they are about the same. */
  get skewMs(): number {
    // The message that was on its way for the shortest time is the best.
    const best = this.#samples.length === 0 ? 0 : Math.max(...this.#samples);
    return Math.abs(best) > TOLERATED_MS ? best : 0;
  }

  now(): number {
    return this.#now() + this.skewMs;
  }
}

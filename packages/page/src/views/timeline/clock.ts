const SAMPLES = 4;
const TOLERATED_MS = 3_000;

/** The browser's clocks, milliseconds: the wall clock, which is set now and then, and one that only runs. */
export interface BrowserClocks {
  wall(): number;
  monotonic(): number;
}

const browserClocks: BrowserClocks = { wall: () => Date.now(), monotonic: () => performance.now() };

/**
 * The wall clock of the node, as far as messages show it. Where the browser's clock is another machine's and differs by more than
 * three seconds, or is set while the page is open, the axis would end in the past or the future.
 */
export class NodeClock {
  readonly #browser: BrowserClocks;
  // By how much the node's wall clock was ahead of the browser's monotonic clock when messages came.
  #samples: number[] = [];
  #last: number | undefined;

  constructor(browser: BrowserClocks = browserClocks) {
    this.#browser = browser;
  }

  /** Takes the time of the newest message, when it comes: it was made shortly before. */
  take(at: number): void {
    if (at === this.#last || at <= 0) return;
    this.#last = at;
    this.#samples = [...this.#samples, at - this.#browser.monotonic()].slice(-SAMPLES);
  }

  /** How far the node's clock is ahead of the browser's, milliseconds; 0 where they are about the same. */
  get skewMs(): number {
    if (this.#samples.length === 0) return 0;
    const { wall, monotonic } = this.#browser;
    // The message that was on its way for the shortest time is the best.
    const skew = monotonic() + Math.max(...this.#samples) - wall();
    return Math.abs(skew) > TOLERATED_MS ? skew : 0;
  }

  now(): number {
    return this.#browser.wall() + this.skewMs;
  }
}

const SAMPLES = 4;
const TOLERATED_MS = 3_000;

/** The browser's clocks, milliseconds: the wall clock, which is set now and then, and one that only runs. */
export interface BrowserClocks {
  wall(): number;
  monotonic(): number;
}

const browserClocks: BrowserClocks = { wall: () => Date.now(), monotonic: () => performance.now() };

/**
 * The wall clock of the node, as far as its answers show it. Where the browser's clock is another machine's and differs by more
 * than three seconds, or is set while the page is open, ages would be wrong or negative.
 */
export class NodeClock {
  readonly #browser: BrowserClocks;
  // By how much the node's wall clock was ahead of the browser's monotonic clock when messages came.
  #samples: number[] = [];
  #last: number | undefined;

  constructor(browser: BrowserClocks = browserClocks) {
    this.#browser = browser;
  }

  /** Takes the time at which something was made that comes now. Call it for what was made shortly before only. */
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
    // Whole milliseconds, as addresses of the API want them: the monotonic clock has parts of one.
    return Math.abs(skew) > TOLERATED_MS ? Math.round(skew) : 0;
  }

  /** Takes the `Date` of an answer (RFC 9110, 6.6.1): whole seconds, of which half a one has passed on average. */
  takeDate(date: string | null): void {
    const at = date === null ? Number.NaN : Date.parse(date);
    if (Number.isFinite(at)) this.take(at + 500);
  }

  now(): number {
    return this.#browser.wall() + this.skewMs;
  }
}

/** The clock of the node whose page this is: fed with each connection and by the stream. */
export const nodeClock = new NodeClock();

/** The time of now by the node's clock, milliseconds since the epoch: what times of the agent are compared with. */
export function nodeNow(): number {
  return nodeClock.now();
}

const SAMPLES = 4;
const TOLERATED_MS = 3_000;

/** The browser's clocks, milliseconds: the wall clock, which may be set, and a monotonic one. */
export interface BrowserClocks {
  wall(): number;
  monotonic(): number;
}

const browserClocks: BrowserClocks = { wall: () => Date.now(), monotonic: () => performance.now() };

/**
 * The wall clock of the node, derived from its responses. If the browser runs on another machine and its clock differs
 * by more than three seconds, or is set while the page is open, ages would otherwise be wrong or negative.
 */
export class NodeClock {
  readonly #browser: BrowserClocks;
  // Offsets of the node's wall clock from the browser's monotonic clock when messages arrived.
  #samples: number[] = [];
  #last: number | undefined;

  constructor(browser: BrowserClocks = browserClocks) {
    this.#browser = browser;
  }

  /** Takes the creation time of a message that arrives now. Call it only for messages created immediately before. */
  take(at: number): void {
    if (at === this.#last || at <= 0) return;
    this.#last = at;
    this.#samples = [...this.#samples, at - this.#browser.monotonic()].slice(-SAMPLES);
  }

  /** How far the node's clock is ahead of the browser's, milliseconds; 0 if the difference is within tolerance. */
  get skewMs(): number {
    if (this.#samples.length === 0) return 0;
    const { wall, monotonic } = this.#browser;
    // The message with the lowest latency gives the best estimate.
    const skew = monotonic() + Math.max(...this.#samples) - wall();
    // Rounded because the API requires integers and the monotonic clock has fractions of milliseconds.
    return Math.abs(skew) > TOLERATED_MS ? Math.round(skew) : 0;
  }

  /**
   * Takes the `Date` header of a response (RFC 9110, 6.6.1). Its resolution is one second, so half a second has passed
   * on average.
   */
  takeDate(date: string | null): void {
    const at = date === null ? Number.NaN : Date.parse(date);
    if (Number.isFinite(at)) this.take(at + 500);
  }

  now(): number {
    return this.#browser.wall() + this.skewMs;
  }
}

/** The clock of this page's node, adjusted by each connection and by the stream. */
export const nodeClock = new NodeClock();

/** The current time by the node's clock, milliseconds since the epoch. Times from the agent are compared with it. */
export function nodeNow(): number {
  return nodeClock.now();
}

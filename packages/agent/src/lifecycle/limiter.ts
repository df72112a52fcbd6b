import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";

export interface InspectionLimiterOptions {
  clock: Clock;
  /** Initial, minimum and maximum number of concurrent calls. */
  initial: number;
  min: number;
  max: number;
  /** A call that takes longer no longer counts towards the concurrency limit, milliseconds. */
  timeoutMs: number;
  /** Maximum number of overdue calls; beyond it no new call is started. */
  maxOverdue: number;
}

// A call this many times slower than the baseline indicates an overloaded runtime...
const CONGESTED_FACTOR = 4;
// ...unless it took less than this, milliseconds.
const CONGESTED_FLOOR_MS = 5;
// The baseline drifts upwards, so that the limit recovers for a runtime that has become permanently slower.
const BASELINE_DRIFT = 1.02;
const DECREASE = 0.7;

/**
 * Limits concurrent calls to the runtime and adapts the limit: one more after each round of successful calls, 30 % less
 * when calls slow down or fail (additive increase, multiplicative decrease).
 */
export class InspectionLimiter {
  readonly #options: InspectionLimiterOptions;
  readonly #queue: (() => void)[] = [];
  #limit: number;
  #running = 0;
  #overdue = 0;
  #baselineMs: number | undefined;
  #decreasedAt = Number.NEGATIVE_INFINITY;

  constructor(options: InspectionLimiterOptions) {
    this.#options = options;
    this.#limit = options.initial;
  }

  /** The current concurrency limit. */
  get limit(): number {
    return Math.floor(this.#limit);
  }

  get running(): number {
    return this.#running;
  }

  /** Number of calls in progress that exceeded the timeout. */
  get overdue(): number {
    return this.#overdue;
  }

  /**
   * Runs `work` when the limit permits. `onOverdue` is called when it exceeds the timeout; its result is still awaited.
   * Throws `unavailable` if too many calls are overdue.
   */
  async run<T>(work: () => Promise<T>, signal: AbortSignal, onOverdue: () => void): Promise<T> {
    await this.#enter();
    const { clock, timeoutMs, maxOverdue } = this.#options;
    let inPlace = true;
    const leave = () => {
      if (!inPlace) return;
      inPlace = false;
      this.#running--;
      this.#admit();
    };
    if (signal.aborted || this.#overdue >= maxOverdue) {
      leave();
      signal.throwIfAborted();
      throw new NodekeeperError(
        "unavailable",
        `${this.#overdue} calls to the runtime have no response; no further call is made until one ends`,
        { id: "NK1404" },
      );
    }
    const startedAt = clock.monotonic();
    const timer = clock.after(timeoutMs, () => {
      this.#overdue++;
      this.#slowDown(startedAt);
      leave();
      onOverdue();
    });
    try {
      const result = await work();
      if (inPlace) this.#learn(startedAt);
      return result;
    } catch (error) {
      if (inPlace && !signal.aborted) this.#slowDown(startedAt);
      throw error;
    } finally {
      timer.cancel();
      if (!inPlace) this.#overdue--;
      leave();
    }
  }

  #enter(): Promise<void> {
    if (this.#running < this.limit) {
      this.#running++;
      return Promise.resolve();
    }
    // The queue is bounded by the callers: a pod has at most one reading in progress.
    return new Promise((resolve) => this.#queue.push(resolve));
  }

  #admit(): void {
    while (this.#running < this.limit) {
      const next = this.#queue.shift();
      if (!next) return;
      this.#running++;
      next();
    }
  }

  #learn(startedAt: number): void {
    const took = this.#options.clock.monotonic() - startedAt;
    const baseline = Math.min((this.#baselineMs ?? took) * BASELINE_DRIFT, Math.max(took, 0.1));
    this.#baselineMs = baseline;
    if (took > Math.max(baseline * CONGESTED_FACTOR, CONGESTED_FLOOR_MS)) this.#slowDown(startedAt);
    else this.#limit = Math.min(this.#limit + 1 / this.limit, this.#options.max);
  }

  // Calls that started before the last decrease do not cause another one.
  #slowDown(startedAt: number): void {
    if (startedAt < this.#decreasedAt) return;
    this.#decreasedAt = this.#options.clock.monotonic();
    this.#limit = Math.max(this.#limit * DECREASE, this.#options.min);
  }
}

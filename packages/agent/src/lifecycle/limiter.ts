import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";

export interface InspectionLimiterOptions {
  clock: Clock;
  /** Calls at once at the start, at least and at most. */
  initial: number;
  min: number;
  max: number;
  /** A call that takes longer gives its place to the next one, milliseconds. */
  patienceMs: number;
  /** How many calls may be out beyond their patience before no new one is begun. */
  maxOverdue: number;
}

// A call this many times slower than a quick one tells of a runtime under pressure...
const CONGESTED_FACTOR = 4;
// ...unless it was quick in absolute terms, milliseconds.
const CONGESTED_FLOOR_MS = 5;
// The memory of quick calls fades, so that a runtime that is slower for good is not held down for good.
const BASELINE_DRIFT = 1.02;
const DECREASE = 0.7;

/**
 * Bounds the calls to the runtime that run at once, and adapts the bound to it: one more for every round of calls
 * that go well, a third less when calls slow down or fail (additive increase, multiplicative decrease).
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

  /** How many calls may run at once now. */
  get limit(): number {
    return Math.floor(this.#limit);
  }

  get running(): number {
    return this.#running;
  }

  /** Calls that are out beyond their patience. */
  get overdue(): number {
    return this.#overdue;
  }

  /**
   * Runs `work` when there is a place. `onOverdue` is called when it outlives its patience; it is still waited for.
   * Throws `unavailable` when too many calls hang already.
   */
  async run<T>(work: () => Promise<T>, signal: AbortSignal, onOverdue: () => void): Promise<T> {
    await this.#enter();
    const { clock, patienceMs, maxOverdue } = this.#options;
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
        `${this.#overdue} calls to the runtime hang; not asked again yet`,
      );
    }
    const begun = clock.monotonic();
    const timer = clock.after(patienceMs, () => {
      this.#overdue++;
      this.#slowDown(begun);
      leave();
      onOverdue();
    });
    try {
      const result = await work();
      if (inPlace) this.#learn(begun);
      return result;
    } catch (error) {
      if (inPlace && !signal.aborted) this.#slowDown(begun);
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
    // Bounded by its callers: a pod is read once at a time.
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

  #learn(begun: number): void {
    const took = this.#options.clock.monotonic() - begun;
    const baseline = Math.min((this.#baselineMs ?? took) * BASELINE_DRIFT, Math.max(took, 0.1));
    this.#baselineMs = baseline;
    if (took > Math.max(baseline * CONGESTED_FACTOR, CONGESTED_FLOOR_MS)) this.#slowDown(begun);
    else this.#limit = Math.min(this.#limit + 1 / this.limit, this.#options.max);
  }

  // Calls that began before the last decrease tell of the pressure that it answered.
  #slowDown(begun: number): void {
    if (begun < this.#decreasedAt) return;
    this.#decreasedAt = this.#options.clock.monotonic();
    this.#limit = Math.max(this.#limit * DECREASE, this.#options.min);
  }
}

import { RuntimeNotResponding } from "@nodekeeper/api/errors";
import { Semaphore } from "@nodekeeper/core/lib";
import type { LifecycleContext } from "./context.ts";

// A call that took this many times the baseline indicates an overloaded runtime.
const CONGESTED_FACTOR = 4;
// A call of at most this duration is never taken as a sign of overload, milliseconds.
const CONGESTED_FLOOR_MS = 5;
// The baseline drifts upwards, so that the limit recovers if the runtime becomes permanently slower.
const BASELINE_DRIFT = 1.02;
const DECREASE = 0.7;

/**
 * Limits concurrent calls to the runtime and adapts the limit by additive increase, multiplicative decrease:
 * one more after each round of successful calls, 30 % less when calls slow down or fail.
 */
export class InspectionLimiter {
  readonly #context: Pick<LifecycleContext, "clock" | "settings">;
  // Unbounded: callers have at most one reading in progress per pod.
  readonly #permits: Semaphore;
  #limit: number;
  #overdue = 0;
  #baselineMs: number | undefined;
  #decreasedAt = Number.NEGATIVE_INFINITY;

  constructor(context: Pick<LifecycleContext, "clock" | "settings">) {
    const { initialInspections, maxInspections } = context.settings;
    this.#context = context;
    this.#limit = Math.min(initialInspections, maxInspections);
    this.#permits = new Semaphore({ permits: this.#limit });
  }

  /** The current concurrency limit. */
  get limit(): number {
    return this.#permits.permits;
  }

  get running(): number {
    return this.#permits.running;
  }

  /** Number of calls in progress that have exceeded `inspectionPatience`. */
  get overdue(): number {
    return this.#overdue;
  }

  /**
   * Runs `work` when the limit permits. Calls `onOverdue` if it exceeds `inspectionPatience`; its result is
   * still awaited. Throws `unavailable` if too many calls are overdue.
   */
  run<T>(work: () => Promise<T>, signal: AbortSignal, onOverdue: () => void): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#permits
      .run(
        signal,
        () =>
          new Promise<void>((leave) => {
            this.#call(work, signal, () => {
              leave();
              onOverdue();
            })
              .finally(leave)
              .then(resolve, reject);
          }),
      )
      .catch(reject);
    return promise;
  }

  async #call<T>(work: () => Promise<T>, signal: AbortSignal, onOverdue: () => void): Promise<T> {
    const { clock, settings } = this.#context;
    if (this.#overdue >= settings.maxOverdue)
      throw new RuntimeNotResponding({
        problem: `${this.#overdue} calls to the runtime have no response; no further call is made until one ends`,
      });
    const startedAt = clock.monotonic();
    let isOverdue = false;
    const timer = clock.after(settings.inspectionPatience, () => {
      isOverdue = true;
      this.#overdue++;
      this.#slowDown(startedAt);
      onOverdue();
    });
    try {
      const result = await work();
      if (!isOverdue) this.#learn(startedAt);
      return result;
    } catch (error) {
      if (!isOverdue && !signal.aborted) this.#slowDown(startedAt);
      throw error;
    } finally {
      timer.cancel();
      if (isOverdue) this.#overdue--;
    }
  }

  #learn(startedAt: number): void {
    const { clock, settings } = this.#context;
    const took = clock.monotonic() - startedAt;
    const baseline = Math.min((this.#baselineMs ?? took) * BASELINE_DRIFT, Math.max(took, 0.1));
    this.#baselineMs = baseline;
    if (took > Math.max(baseline * CONGESTED_FACTOR, CONGESTED_FLOOR_MS)) this.#slowDown(startedAt);
    else this.#setLimit(Math.min(this.#limit + 1 / this.limit, settings.maxInspections));
  }

  // Calls that started before the last decrease do not cause another one.
  #slowDown(startedAt: number): void {
    if (startedAt < this.#decreasedAt) return;
    this.#decreasedAt = this.#context.clock.monotonic();
    this.#setLimit(Math.max(this.#limit * DECREASE, 1));
  }

  #setLimit(limit: number): void {
    this.#limit = limit;
    this.#permits.resize(Math.floor(limit));
  }
}

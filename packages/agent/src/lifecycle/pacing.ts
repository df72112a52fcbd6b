import { type Clock, WakeableSleep } from "@nodekeeper/core/lib";

export interface RelistPacingOptions {
  clock: Clock;
  /** Period from the end of a relist to the start of the next, milliseconds. */
  shortMs: number;
  /** The same while hints are reliable. */
  longMs: number;
  /** How long hints count as unreliable after a miss, milliseconds. */
  distrustMs: number;
  /** Whether hints are reliable apart from misses. */
  relaxed: () => boolean;
}

/** Schedules relists. */
export class RelistPacing {
  readonly #options: RelistPacingOptions;
  readonly #sleep = new WakeableSleep();
  #distrustedUntil = Number.NEGATIVE_INFINITY;
  #soon = false;

  constructor(options: RelistPacingOptions) {
    this.#options = options;
  }

  /** Current period from the end of a relist to the start of the next, milliseconds. */
  get periodMs(): number {
    const { clock, shortMs, longMs, relaxed } = this.#options;
    if (this.#soon || clock.monotonic() < this.#distrustedUntil || !relaxed()) return shortMs;
    return Math.max(longMs, shortMs);
  }

  /** Called when a relist starts, which satisfies earlier requests. */
  begin(): void {
    this.#soon = false;
  }

  /** Requests the next relist after the short period. */
  soon(): void {
    this.#soon = true;
    this.#sleep.wake();
  }

  /** Called when a hint was missed: uses the short period for a while. */
  distrust(): void {
    this.#distrustedUntil = this.#options.clock.monotonic() + this.#options.distrustMs;
    this.#sleep.wake();
  }

  /** Waits from the end of a relist until the next is due, or the signal aborts; calls `onShort` every short period. */
  async pause(onShort: () => void, signal: AbortSignal): Promise<void> {
    const { clock, shortMs } = this.#options;
    const endedAt = clock.monotonic();
    let shortAt = endedAt + shortMs;
    while (!signal.aborted) {
      this.#sleep.clear();
      const now = clock.monotonic();
      const due = endedAt + this.periodMs;
      if (now >= due) return;
      if (now >= shortAt) {
        onShort();
        shortAt = now + shortMs;
      }
      await this.#sleep.wait(clock, Math.min(due, shortAt) - now, signal).catch(() => {});
    }
  }
}

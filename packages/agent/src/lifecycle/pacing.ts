import { type Clock, WakeableSleep } from "@nodekeeper/core/lib";

export interface RelistPacingOptions {
  clock: Clock;
  /** From the end of a relist to the start of the next, milliseconds. */
  shortMs: number;
  /** The same while hints can be relied on. */
  longMs: number;
  /** How long they can't after one was missed, milliseconds. */
  distrustMs: number;
  /** Whether they can otherwise. */
  relaxed: () => boolean;
}

/** When the next relist is due. */
export class RelistPacing {
  readonly #options: RelistPacingOptions;
  readonly #sleep = new WakeableSleep();
  #distrustedUntil = Number.NEGATIVE_INFINITY;
  #soon = false;

  constructor(options: RelistPacingOptions) {
    this.#options = options;
  }

  /** From the end of a relist to the start of the next as it is now, milliseconds. */
  get periodMs(): number {
    const { clock, shortMs, longMs, relaxed } = this.#options;
    if (this.#soon || clock.monotonic() < this.#distrustedUntil || !relaxed()) return shortMs;
    return Math.max(longMs, shortMs);
  }

  /** A relist starts: it is the one that was asked for. */
  begin(): void {
    this.#soon = false;
  }

  /** The next relist comes after the short period. */
  soon(): void {
    this.#soon = true;
    this.#sleep.wake();
  }

  /** A hint was missed: others may be, and are no ground for listing rarely for a while. */
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

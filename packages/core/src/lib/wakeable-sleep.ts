import type { Clock } from "./clock.ts";

/** An interruptible sleep for a single sleeper. A wake-up before the sleep is kept. Several count as one. */
export class WakeableSleep {
  #isWoken = false;
  #wake: (() => void) | undefined;

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Discards earlier wake-ups. */
  clear(): void {
    this.#isWoken = false;
  }

  /** Like `wait`, but an abort merely ends the sleep. Never rejects. */
  async waitOrAbort(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    await this.wait(clock, ms, signal).catch(() => {});
  }

  /**
   * Sleeps until woken or until `ms`, which may be infinite, have passed. Returns whether it was woken. Rejects with
   * the signal's reason.
   */
  wait(clock: Clock, ms: number, signal?: AbortSignal): Promise<boolean> {
    if (this.#isWoken) return Promise.resolve(true);
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        timer?.cancel();
        signal?.removeEventListener("abort", onAbort);
        this.#wake = undefined;
        settle();
      };
      const onAbort = () => end(() => reject(signal?.reason));
      const timer = Number.isFinite(ms) ? clock.after(ms, () => end(() => resolve(false))) : undefined;
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#wake = () => end(() => resolve(true));
      if (signal?.aborted) onAbort();
    });
  }
}

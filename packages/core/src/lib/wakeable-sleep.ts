import type { Clock } from "./clock.ts";

/** A sleep that can be cut short, for one sleeper. A wake-up while it does not sleep is kept; several count as one. */
export class WakeableSleep {
  #isWoken = false;
  #wake: (() => void) | undefined;

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Forgets wake-ups so far. */
  clear(): void {
    this.#isWoken = false;
  }

  /**
   * Sleeps until woken, `ms` at most, which may be infinite: whether it was woken. Rejects with the signal's reason.
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

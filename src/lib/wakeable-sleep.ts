import { childScope } from "./abort.ts";
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

  /** Sleeps until woken, `ms` at most: whether it was woken. Rejects with the signal's reason. */
  async wait(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isWoken) return true;
    using scope = childScope(signal);
    this.#wake = () => scope.abort();
    try {
      await clock.sleep(ms, scope.signal);
      return this.#isWoken;
    } catch (error) {
      signal.throwIfAborted();
      if (this.#isWoken) return true;
      throw error;
    } finally {
      this.#wake = undefined;
    }
  }
}

import { type Clock, childScope } from "../../lib/index.ts";

/** Wakes the one who waits; a ring while nobody waits is kept, several count as one. */
export class Alarm {
  #isRung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#isRung = true;
    this.#wake?.();
  }

  /** Forgets rings so far. */
  clear(): void {
    this.#isRung = false;
  }

  /** Waits for a ring, `ms` at most: whether there was one. Rejects with the signal's reason. */
  async wait(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#isRung) return true;
    using scope = childScope(signal);
    this.#wake = () => scope.abort();
    try {
      await clock.sleep(ms, scope.signal);
      return this.#isRung;
    } catch (error) {
      signal.throwIfAborted();
      if (this.#isRung) return true;
      throw error;
    } finally {
      this.#wake = undefined;
    }
  }
}

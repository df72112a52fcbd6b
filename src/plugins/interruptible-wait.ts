import type { Clock } from "../lib/index.ts";

/** A wait that somebody else can end early. One at a time. */
export class InterruptibleWait {
  readonly #clock: Clock;
  #end: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the wait that is under way, if there is one. */
  wake(): void {
    this.#end?.();
  }

  /** Resolves after `ms`, or when woken; rejects with the signal's reason. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void) => {
        timer.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#end = undefined;
        settle();
      };
      const onAbort = () => finish(() => reject(signal.reason));
      const timer = this.#clock.after(ms, () => finish(resolve));
      signal.addEventListener("abort", onAbort, { once: true });
      this.#end = () => finish(resolve);
      if (signal.aborted) onAbort();
    });
  }
}

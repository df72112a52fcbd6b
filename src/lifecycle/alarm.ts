import type { Clock } from "../lib/index.ts";

/** A sleep that can be cut short. One sleeper at a time. */
export class Alarm {
  readonly #clock: Clock;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after `ms`, when somebody rings, or when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel();
        signal.removeEventListener("abort", wake);
        this.#wake = undefined;
        resolve();
      };
      const timer = this.#clock.after(ms, wake);
      signal.addEventListener("abort", wake, { once: true });
      this.#wake = wake;
    });
  }

  ring(): void {
    this.#wake?.();
  }
}

import type { Clock, Timer } from "@nodekeeper/core/lib";

interface Delay {
  /** Monotonic milliseconds. */
  startedAt: number;
  timer: Timer;
  action: () => void;
}

/** Actions on drivers that are due when a configured delay has passed. At most one per driver. */
export class DriverDelays {
  readonly #clock: Clock;
  readonly #delayMs: () => number;
  readonly #delays = new Map<string, Delay>();

  /** @param delayMs returns the configured delay in milliseconds */
  constructor(clock: Clock, delayMs: () => number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  has(driver: string): boolean {
    return this.#delays.has(driver);
  }

  /** Starts the delay. Replaces a pending action of the driver. */
  start(driver: string, action: () => void, startedAt = this.#clock.monotonic()): void {
    this.cancel(driver);
    const remainingMs = Math.max(0, startedAt + this.#delayMs() - this.#clock.monotonic());
    const timer = this.#clock.after(remainingMs, () => {
      this.#delays.delete(driver);
      action();
    });
    this.#delays.set(driver, { startedAt, timer, action });
  }

  /** Applies the configured delay to pending actions, from when their delays were started. */
  settingsChanged(): void {
    for (const [driver, { action, startedAt }] of [...this.#delays]) this.start(driver, action, startedAt);
  }

  cancel(driver: string): void {
    this.#delays.get(driver)?.timer.cancel();
    this.#delays.delete(driver);
  }

  stop(): void {
    for (const driver of [...this.#delays.keys()]) this.cancel(driver);
  }
}

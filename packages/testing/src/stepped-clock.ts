import { type Clock, systemClock } from "@nodekeeper/core/lib";

/** The machine's clock with a wall time that a test steps, as an administrator or NTP would. */
export class SteppedClock implements Clock {
  #offset = 0;

  /** Steps the wall time alone, milliseconds. */
  step(ms: number): void {
    this.#offset += ms;
  }

  now(): number {
    return systemClock.now() + this.#offset;
  }

  monotonic(): number {
    return systemClock.monotonic();
  }

  after(ms: number, callback: () => void) {
    return systemClock.after(ms, callback);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal);
  }
}

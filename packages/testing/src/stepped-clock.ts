import { type Clock, sleepOn, systemClock, type Timer } from "@nodekeeper/core/lib";

interface Pending {
  /** In this clock's `monotonic` time. */
  due: number;
  callback: () => void;
  timer: Timer;
}

/** The system clock, adjustable by tests: `step` changes only the wall clock, `advance` all time. */
export class SteppedClock implements Clock {
  #offset = 0;
  #ahead = 0;
  readonly #pending = new Set<Pending>();

  /** Changes only the wall clock, in milliseconds, as an administrator or NTP would. */
  step(ms: number): void {
    this.#offset += ms;
  }

  /**
   * Advances all time by milliseconds. Timers due by then fire immediately, in order. They include the deadlines of
   * calls in progress, so advance by less than those, or while there are none.
   */
  advance(ms: number): void {
    this.#ahead += ms;
    for (const pending of [...this.#pending].sort((a, b) => a.due - b.due)) {
      pending.timer.cancel();
      this.#arm(pending);
    }
  }

  now(): number {
    return systemClock.now() + this.#offset + this.#ahead;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#ahead;
  }

  after(ms: number, callback: () => void): Timer {
    const pending: Pending = { due: this.monotonic() + ms, callback, timer: { cancel: () => {} } };
    this.#pending.add(pending);
    this.#arm(pending);
    return {
      cancel: () => {
        this.#pending.delete(pending);
        pending.timer.cancel();
      },
    };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  #arm(pending: Pending): void {
    pending.timer = systemClock.after(pending.due - this.monotonic(), () => {
      this.#pending.delete(pending);
      pending.callback();
    });
  }
}

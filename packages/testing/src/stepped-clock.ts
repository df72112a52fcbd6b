import { type Clock, sleepOn, systemClock, type Timer } from "@nodekeeper/core/lib";

interface Pending {
  /** By this clock's `monotonic`. */
  due: number;
  callback: () => void;
  timer: Timer;
}

/** The machine's clock, which a test moves on: the wall time alone by `step`, all of its time by `advance`. */
export class SteppedClock implements Clock {
  #offset = 0;
  #ahead = 0;
  readonly #pending = new Set<Pending>();

  /** Steps the wall time alone, milliseconds, as an administrator or NTP would. */
  step(ms: number): void {
    this.#offset += ms;
  }

  /**
   * Moves all time on, milliseconds: timers that are due by then fire at once, those that were due first before others.
   * Deadlines of calls under way are among them: advance by less than they have, or while there are none.
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

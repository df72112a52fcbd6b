import { type Clock, sleepOn, type Timer } from "./clock.ts";

interface Pending {
  due: number;
  order: number;
  callback: () => void;
}

/** A clock that advances only when a test steps it. */
export class FakeClock implements Clock {
  #now: number;
  #elapsed = 0;
  #order = 0;
  // Sorted by due time.
  readonly #pending: Pending[] = [];

  /** @param now initial wall clock time, in milliseconds since the epoch */
  constructor(now = 1_700_000_000_000) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#elapsed;
  }

  after(ms: number, callback: () => void): Timer {
    const pending = { due: this.#elapsed + Math.max(ms, 0), order: this.#order++, callback };
    this.#pending.splice(this.#placeOf(pending), 0, pending);
    return { cancel: () => this.#remove(pending) };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** Number of pending timers. */
  get timers(): number {
    return this.#pending.length;
  }

  /** Changes only the wall clock, as an administrator or NTP does. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Advances time by `ms`. Fires due timers in order and lets promises settle in between. */
  async step(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await settle();
    for (let [next] = this.#pending; next && next.due <= end; [next] = this.#pending) {
      this.#pending.shift();
      this.#advanceTo(next.due);
      next.callback();
      await settle();
    }
    this.#advanceTo(end);
    await settle();
  }

  #advanceTo(elapsed: number): void {
    const delta = Math.max(elapsed - this.#elapsed, 0);
    this.#elapsed += delta;
    this.#now += delta;
  }

  #remove(pending: Pending): void {
    const place = this.#placeOf(pending);
    if (this.#pending[place] === pending) this.#pending.splice(place, 1);
  }

  // Binary search, so that tests with thousands of timers are fast.
  #placeOf({ due, order }: Pending): number {
    let from = 0;
    let to = this.#pending.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      const { due: otherDue, order: otherOrder } = this.#pending[middle]!;
      if (otherDue < due || (otherDue === due && otherOrder < order)) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

// Several turns of the event loop, so that chains of promises and immediates complete.
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

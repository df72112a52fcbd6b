import { type Clock, sleepOn, type Timer } from "./clock.ts";

interface Pending {
  due: number;
  order: number;
  callback: () => void;
}

/** A clock that moves only when a test steps it. */
export class FakeClock implements Clock {
  #now: number;
  #elapsed = 0;
  #order = 0;
  #pending = new Set<Pending>();

  /** @param now the wall time to start at, milliseconds since the epoch */
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
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** How many timers are waiting. */
  get timers(): number {
    return this.#pending.size;
  }

  /** Steps the wall time alone, as an administrator or NTP does. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** Moves time on by `ms`, firing due timers in order and letting promises settle between them. */
  async step(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await settle();
    for (let next = this.#nextDue(end); next; next = this.#nextDue(end)) {
      this.#pending.delete(next);
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

  #nextDue(end: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.due > end) continue;
      if (!first || pending.due < first.due || (pending.due === first.due && pending.order < first.order)) {
        first = pending;
      }
    }
    return first;
  }
}

// Several turns of the event loop, so that chains of promises and immediates run dry.
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** A pending timer; `cancel` is idempotent. */
export interface Timer {
  cancel(): void;
}

/** All time in the agent comes from a Clock, so that tests can step it. Times and durations are milliseconds. */
export interface Clock {
  /** Wall time, milliseconds since the epoch. It may jump. */
  now(): number;
  /** Time that only moves forward, milliseconds since some fixed point. For measuring durations. */
  monotonic(): number;
  /**
   * Calls `callback` once, `ms` from now: never before so much has passed by `monotonic`, so that what is due then is due
   * for the callback as well. At the earliest in a later turn of the event loop.
   */
  after(ms: number, callback: () => void): Timer;
  /** Resolves `ms` from now; rejects with the signal's reason when aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// setTimeout fires at once for longer delays than this (2^31-1 ms, about 24 days).
const LONGEST_DELAY_MS = 2_147_483_647;

/** Sleeps on any Clock's `after`: one implementation for the real and the fake clock. */
export function sleepOn(clock: Pick<Clock, "after">, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(ms, callback) {
    const due = performance.now() + Math.max(ms, 0);
    // setTimeout counts whole milliseconds by a clock of its own: it is up to two early.
    const fire = () => {
      const leftMs = due - performance.now();
      if (leftMs > 0) handle = arm(leftMs);
      else callback();
    };
    const arm = (leftMs: number) => setTimeout(fire, Math.min(Math.ceil(leftMs), LONGEST_DELAY_MS));
    let handle = arm(Math.max(ms, 0));
    return { cancel: () => clearTimeout(handle) };
  },
  sleep(ms, signal) {
    return sleepOn(this, ms, signal);
  },
};

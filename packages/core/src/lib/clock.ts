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
  /** Calls `callback` once, `ms` from now. */
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
    const handle = setTimeout(callback, Math.min(Math.max(ms, 0), LONGEST_DELAY_MS));
    return { cancel: () => clearTimeout(handle) };
  },
  sleep(ms, signal) {
    return sleepOn(this, ms, signal);
  },
};

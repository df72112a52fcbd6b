/** A pending timer; `cancel` is idempotent. */
export interface Timer {
  cancel(): void;
}

/** Source of all time in the agent, so that tests can control it. Times and durations are in milliseconds. */
export interface Clock {
  /** Wall clock time, in milliseconds since the epoch. It may jump. */
  now(): number;
  /** Monotonic time, in milliseconds since an arbitrary point. Use it to measure durations. */
  monotonic(): number;
  /**
   * Calls `callback` once, in a later turn of the event loop, after at least `ms` have passed by `monotonic`: how much
   * later depends on the clock. The callback therefore observes a deadline at that time as passed.
   */
  after(ms: number, callback: () => void): Timer;
  /** Resolves after `ms`; rejects with the signal's reason if the signal aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Implements `Clock.sleep` by `Clock.after`, for the system clock and the fake one. */
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

/** Sleeps for `ms`, or until the signal aborts. Never rejects. */
export async function sleepOrAbort(
  clock: Pick<Clock, "sleep">,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  await clock.sleep(ms, signal).catch(() => {});
}

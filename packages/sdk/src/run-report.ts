import {
  abortable,
  Backoff,
  type Clock,
  type LatestValue,
  type Logger,
  retryPolicies,
} from "@nodekeeper/core/lib";

/** Yields all that the plugin reports, again each time it changes. Restarted when it throws. */
export type Report<T> = (signal: AbortSignal) => AsyncIterable<T[]>;

/** Runs the author's report into `latest` until the signal aborts; a throw restarts it after 0.5 to 30 s. */
export async function runReport<T>(
  report: Report<T>,
  latest: LatestValue<T[]>,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(retryPolicies.pluginReport);
  while (!signal.aborted) {
    try {
      await follow(report, signal, (contents) => {
        backoff.reset();
        latest.set(contents);
      });
      log.info("report ended, its last value stays");
      return;
    } catch (error) {
      if (signal.aborted) return;
      const delayMs = Math.round(backoff.next());
      log.error({ err: error, delayMs }, "report failed, starting it again");
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }
}

// Stepped by hand: an iterator that ignores its signal must not hold up the stop.
async function follow<T>(
  report: Report<T>,
  signal: AbortSignal,
  take: (contents: T[]) => void,
): Promise<void> {
  const iterator = report(signal)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await abortable(iterator.next(), signal);
      if (step.done) return;
      if (!Array.isArray(step.value)) throw new TypeError("what is reported must be an array");
      take(step.value);
    }
  } finally {
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

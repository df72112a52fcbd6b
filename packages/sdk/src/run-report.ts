import {
  abortable,
  Backoff,
  type Clock,
  type LatestValue,
  type Logger,
  retryPolicies,
  sleepOrAbort,
} from "@nodekeeper/core/lib";

/** Yields everything that the plugin reports, and again after each change. Restarted if it throws. */
export type Report<T> = (signal: AbortSignal) => AsyncIterable<T[]>;

/**
 * Runs the author's report and stores its values in `latest`, until the signal aborts or the report ends. A report that
 * throws is restarted after 0.5 to 30 s, as is one whose value `check` refuses by throwing.
 */
export async function runReport<T>(
  report: Report<T>,
  latest: LatestValue<T[]>,
  { clock, log, check }: { clock: Clock; log: Logger; check?: (contents: readonly T[]) => void },
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(retryPolicies.pluginReport);
  while (!signal.aborted) {
    try {
      await follow(report, signal, (contents) => {
        check?.(contents);
        backoff.reset();
        latest.set(contents);
      });
      log.info("report ended, its last value stays");
      return;
    } catch (error) {
      if (signal.aborted) return;
      const delayMs = Math.round(backoff.next());
      log.error({ err: error, delayMs }, "report failed, starting it again");
      await sleepOrAbort(clock, delayMs, signal);
    }
  }
}

// Not `for await`: an iterator that ignores its signal must not delay the stop.
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

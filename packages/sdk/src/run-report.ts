import {
  abortable,
  Backoff,
  type Clock,
  type LatestValue,
  type Logger,
  retryPolicies,
  sleepOrAbort,
} from "@nodekeeper/core/lib";
import { authorFailure } from "./services.ts";

/** Yields everything that the plugin reports, at the start and after each change. Restarted if it throws. */
export type Report<T> = (signal: AbortSignal) => AsyncIterable<T[]>;

// A report that threw after this long is restarted with the shortest delay again.
const GOOD_AFTER_MS = 10_000;

/**
 * Runs the author's report and stores its values in `latest`, until the signal aborts or the report ends. A report that
 * throws fails `latest` until its next value, and is restarted after 0.5 to 30 s, as is one whose value `check` refuses
 * by throwing.
 */
export async function runReport<T>(
  report: Report<T>,
  latest: LatestValue<T[]>,
  { clock, log, check }: { clock: Clock; log: Logger; check?: (contents: readonly T[]) => void },
  signal: AbortSignal,
): Promise<void> {
  const backoff = new Backoff(retryPolicies.pluginReport);
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    try {
      await follow(report, signal, (contents) => {
        check?.(contents);
        latest.set(contents);
      });
      log.info("report ended, its last value stays");
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (clock.monotonic() - startedAt > GOOD_AFTER_MS) backoff.reset();
      latest.fail(authorFailure(error));
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

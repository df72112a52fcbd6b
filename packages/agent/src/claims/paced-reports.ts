import { type Clock, childScope, sleepOrAbort, WakeableSleep } from "@nodekeeper/core/lib";

const INTERVAL_MS = 1_000;

/**
 * Rate-limits a driver's reports: yields the first at once, then the most recent one, at most one per second. Skips a
 * report that equals the previously received one byte for byte. When the stream ends, yields the pending report and
 * then throws the stream's error, if any. The caller must end the stream.
 */
export async function* pacedReports(
  reports: AsyncIterable<Uint8Array>,
  clock: Clock,
): AsyncGenerator<Uint8Array> {
  const arrivals = new WakeableSleep();
  using end = childScope();
  let last: Uint8Array | undefined;
  let waiting: Uint8Array | undefined;
  const read = async () => {
    for await (const report of reports) {
      if (last && Buffer.compare(last, report) === 0) continue;
      last = report;
      waiting = report;
      arrivals.wake();
    }
  };
  const reading = read().finally(() => end.abort());
  // Thrown below, unless the caller stops earlier.
  reading.catch(() => {});
  while (waiting || !end.signal.aborted) {
    arrivals.clear();
    const report = waiting;
    waiting = undefined;
    if (report) yield report;
    if (report) await sleepOrAbort(clock, INTERVAL_MS, end.signal);
    else await arrivals.waitOrAbort(clock, Number.POSITIVE_INFINITY, end.signal);
  }
  await reading;
}

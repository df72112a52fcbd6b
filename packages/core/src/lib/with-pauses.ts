import type { Clock } from "./clock.ts";
import { WakeableSleep } from "./wakeable-sleep.ts";

/** Yielded by `withPauses` if no item arrives in time. */
export const pause: unique symbol = Symbol("pause");

/**
 * Yields the items of a source, and `pause` whenever `ms` milliseconds pass without one. Ends and fails with the
 * source. If the caller stops iterating, the source is ended.
 */
export async function* withPauses<T>(
  source: AsyncIterator<T, unknown>,
  clock: Clock,
  ms: number,
): AsyncGenerator<T | typeof pause> {
  const arrival = new WakeableSleep();
  let arrived: PromiseSettledResult<IteratorResult<T, unknown>> | undefined;
  // One reaction per item. Promise.race would add another one to the same promise for every pause.
  const ask = async () => {
    arrival.clear();
    [arrived] = await Promise.allSettled([source.next()]);
    arrival.wake();
  };
  try {
    void ask();
    for (;;) {
      if (!(await arrival.wait(clock, ms))) {
        yield pause;
        continue;
      }
      if (arrived?.status === "rejected") throw arrived.reason;
      if (!arrived || arrived.value.done) return;
      yield arrived.value.value;
      void ask();
    }
  } finally {
    await source.return?.();
  }
}

import type { Clock } from "./clock.ts";

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
  let wake = () => {};
  const ask = () => {
    const asked = {
      result: undefined as IteratorResult<T, unknown> | undefined,
      error: undefined as unknown,
      failed: false,
    };
    // One reaction per item. Promise.race would add another one to the same promise for every pause.
    source.next().then(
      (result) => {
        asked.result = result;
        wake();
      },
      (error) => {
        asked.failed = true;
        asked.error = error;
        wake();
      },
    );
    return asked;
  };
  try {
    for (let asked = ask(); ; ) {
      if (!asked.result && !asked.failed) {
        await new Promise<void>((resolve) => {
          const timer = clock.after(ms, resolve);
          wake = () => {
            timer.cancel();
            resolve();
          };
        });
      }
      if (asked.failed) throw asked.error;
      if (!asked.result) {
        yield pause;
        continue;
      }
      if (asked.result.done) return;
      yield asked.result.value;
      asked = ask();
    }
  } finally {
    await source.return?.();
  }
}

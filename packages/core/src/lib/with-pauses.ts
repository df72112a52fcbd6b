import type { Clock } from "./clock.ts";

/** What `withPauses` yields when nothing came for a while. */
export const pause: unique symbol = Symbol("pause");

/**
 * The items of a source, and `pause` whenever none came for `ms` milliseconds since the last or the last pause.
 * Ends and fails with the source; a caller that stops iterating ends the source.
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
    // One reaction for each item: a race would hang another on the same promise at every pause.
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

const TIMEOUT_MS = 180_000;
const SHORTEST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 100;
const LONGEST_EXPLANATION = 4_000;

/** A clock that is stepped while waiting. */
interface SteppedClock {
  step(ms: number): Promise<void>;
}

export interface UntilOptions {
  /** Called if the wait fails. The result becomes part of the message. */
  explain?: () => unknown;
  /** Stepped between attempts, for components that use a fake clock and real sockets. */
  clock?: SteppedClock;
  /** Step of `clock`, in milliseconds. Default 50. */
  stepMs?: number;
}

/**
 * Calls `look` repeatedly until the result is not false, null or undefined, and returns it. An error of `look` counts
 * as not yet satisfied. After three minutes, throws with `what` and the result of `explain`. The timeout does not delay
 * tests that pass and suffices for a machine at a tenth of the usual speed. It is deliberately not configurable: a test
 * must not depend on the speed of the machine.
 */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  { explain, clock, stepMs = 50 }: UntilOptions = {},
): Promise<Exclude<T, false | null | undefined>> {
  const answer = await poll(
    async () => {
      const found = await look();
      return found === false || found === null || found === undefined ? undefined : { found };
    },
    clock && (() => clock.step(stepMs)),
  );
  if ("found" in answer) return answer.found as Exclude<T, false | null | undefined>;
  const explained = explain ? `\n${cut(JSON.stringify(await explain(), undefined, 2))}` : "";
  throw new Error(`waited without success: ${what}${explained}`, { cause: answer.trouble });
}

/** Repeats the assertions until they pass, with the timeout of `until`. Then fails like them. Returns their result. */
export async function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  const answer = await poll(async () => ({ found: await check() }));
  if ("found" in answer) return answer.found;
  throw answer.trouble;
}

// Returns the result, or the last error after the timeout.
async function poll<T>(
  look: () => Promise<{ found: T } | undefined>,
  beforeNext?: () => Promise<void>,
): Promise<{ found: T } | { trouble: unknown }> {
  const end = performance.now() + TIMEOUT_MS;
  for (let pauseMs = SHORTEST_PAUSE_MS; ; ) {
    let trouble: unknown;
    try {
      const answer = await look();
      if (answer) return answer;
    } catch (error) {
      trouble = error;
    }
    if (performance.now() > end) return { trouble };
    await beforeNext?.();
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    // An attempt may start a process or perform a TLS handshake. Steps of a clock keep their interval.
    if (!beforeNext) pauseMs = Math.min(pauseMs * 1.1, LONGEST_PAUSE_MS);
  }
}

// The end of a log is more important than its start.
function cut(text = "nothing"): string {
  if (text.length <= LONGEST_EXPLANATION) return text;
  const head = LONGEST_EXPLANATION / 8;
  return `${text.slice(0, head)}\n...\n${text.slice(head - LONGEST_EXPLANATION)}`;
}

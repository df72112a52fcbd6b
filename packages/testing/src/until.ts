const TIMEOUT_MS = 180_000;
const SHORTEST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 100;
const LONGEST_EXPLANATION = 4_000;

/** A clock that waits are stepped on. */
interface SteppedClock {
  step(ms: number): Promise<void>;
}

export interface UntilOptions {
  /** Read when the wait fails; its answer becomes part of the message. */
  explain?: () => unknown;
  /** Stepped between two looks, for parts that run on a fake clock and on real sockets at once. */
  clock?: SteppedClock;
  /** How far `clock` is stepped, in milliseconds. Default 50. */
  stepMs?: number;
}

/**
 * Looks again and again until the answer is neither false, null nor undefined, and returns it. An error of `look` counts
 * as "not yet". It waits three minutes, which costs nothing where the condition comes true and lets a machine at a tenth of
 * its speed pass; then it throws with `what` and what `explain` returns. It takes no other limit on purpose: a test that
 * passes or fails with the speed of the machine is no test.
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

/** Repeats the assertions until they pass, as long as `until` waits, then fails as they do. Returns what they return. */
export async function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  const answer = await poll(async () => ({ found: await check() }));
  if ("found" in answer) return answer.found;
  throw answer.trouble;
}

// What was found, or the last error where the time ended first.
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
    // A look may cost a process or a TLS handshake. Steps of a clock keep their pace.
    if (!beforeNext) pauseMs = Math.min(pauseMs * 1.1, LONGEST_PAUSE_MS);
  }
}

// The end of a log matters more than its start.
function cut(text = "nothing"): string {
  if (text.length <= LONGEST_EXPLANATION) return text;
  const head = LONGEST_EXPLANATION / 8;
  return `${text.slice(0, head)}\n...\n${text.slice(head - LONGEST_EXPLANATION)}`;
}

import type { Bench } from "../bench.ts";
import { RuleBroken } from "../finding.ts";
import type { Watch } from "../watch.ts";

/** How long the first message of a stream may take. */
export const FIRST_MESSAGE_MS = 10_000;

/**
 * Throws `RuleBroken` if another stream does not have the same state as a known one. The state may change meanwhile, so
 * only differences that persist count.
 * @param partsOf returns the parts of a message to compare: content by name
 */
export async function checkSame<T>(
  bench: Bench,
  known: Watch<T>,
  open: () => Watch<T>,
  partsOf: (message: T) => Map<string, string>,
): Promise<void> {
  using second = open();
  const until = bench.clock.monotonic() + FIRST_MESSAGE_MS;
  let [one, other] = [await known.after(0, FIRST_MESSAGE_MS), await second.after(0, FIRST_MESSAGE_MS)];
  for (;;) {
    const difference = differenceOf(partsOf(one.value), partsOf(other.value));
    if (difference === undefined) return;
    try {
      const ms = until - bench.clock.monotonic();
      await Promise.any([known.after(one.number, ms), second.after(other.number, ms)]);
    } catch {
      throw new RuleBroken(difference);
    }
    [one, other] = [await known.after(0, 0), await second.after(0, 0)];
  }
}

function differenceOf(first: ReadonlyMap<string, string>, second: ReadonlyMap<string, string>) {
  for (const [name, content] of first) {
    if (!second.has(name)) return `the second stream lacks ${name}`;
    if (second.get(name) !== content) return `${name} differs in the second stream`;
  }
  const added = [...second.keys()].find((name) => !first.has(name));
  return added === undefined ? undefined : `the second stream has ${added}, which the first lacks`;
}

import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, NodekeeperError } from "@nodekeeper/core/lib";

// So long may others wait for their turn, milliseconds.
const SLICE_MS = 2;
/** Time on this thread that one reading may take in all, milliseconds. */
const LONGEST_MS = 250;

/**
 * Does short, synchronous pieces of work one after another and lets others have their turn every two milliseconds.
 * Throws the signal's reason when it aborts. Stops with a `deadline` error, which is returned, when the pieces have
 * taken 250 ms: a kernel that is so slow must not stop the agent.
 */
export async function inSlices<T>(
  clock: Clock,
  items: Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => void,
): Promise<NodekeeperError | undefined> {
  let spent = 0;
  let done = 0;
  let startedAt = clock.monotonic();
  for (const item of items) {
    const sliceMs = clock.monotonic() - startedAt;
    if (sliceMs > SLICE_MS) {
      spent += sliceMs;
      if (spent > LONGEST_MS) return tooSlow(done, spent);
      await nextTurn();
      signal.throwIfAborted();
      startedAt = clock.monotonic();
    }
    work(item);
    done++;
  }
  return undefined;
}

function tooSlow(done: number, spentMs: number): NodekeeperError {
  return new NodekeeperError(
    "deadline",
    `the kernel took ${Math.round(spentMs)} ms for ${done} cgroups: the others were not read`,
  );
}

import { setImmediate as nextTurn } from "node:timers/promises";
import { NodekeeperError } from "@nodekeeper/core/lib";

// CPU time after which other work has its turn, milliseconds.
const SLICE_MS = 2;
/** CPU time that one reading may take in all, milliseconds. */
const LONGEST_MS = 250;

/**
 * Does short, synchronous pieces of work one after another and lets other work have its turn every two milliseconds of
 * CPU time. Throws the signal's reason when it aborts, which also bounds the time on the clock. Stops with a `deadline`
 * error, which is returned, when the pieces have used 250 ms of CPU: a kernel that is so slow must not stop the agent,
 * and other processes that keep the machine busy are no reason to stop.
 * @param cpuMs CPU time of this thread so far, milliseconds
 */
export async function inSlices<T>(
  cpuMs: () => number,
  items: Iterable<T>,
  signal: AbortSignal,
  work: (item: T) => void,
): Promise<NodekeeperError | undefined> {
  let spent = 0;
  let done = 0;
  let startedAt = cpuMs();
  for (const item of items) {
    const sliceMs = cpuMs() - startedAt;
    if (sliceMs > SLICE_MS) {
      spent += sliceMs;
      if (spent > LONGEST_MS) return tooSlow(done, spent);
      await nextTurn();
      signal.throwIfAborted();
      startedAt = cpuMs();
    }
    work(item);
    done++;
  }
  return undefined;
}

function tooSlow(done: number, spentMs: number): NodekeeperError {
  return new NodekeeperError(
    "deadline",
    `the kernel used ${Math.round(spentMs)} ms of CPU for ${done} cgroups: the others were not read`,
  );
}

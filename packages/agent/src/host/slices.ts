import { setImmediate as nextTurn } from "node:timers/promises";
import { NodekeeperError } from "@nodekeeper/core/lib";

// CPU time before yielding to other work, in milliseconds.
const SLICE_MS = 2;
/** Maximum CPU time of one reading, in milliseconds. */
const LONGEST_MS = 250;

/**
 * Processes items sequentially and yields to the event loop after every two milliseconds of CPU time. Throws the
 * signal's reason if it aborts; the signal's deadline bounds the elapsed time. Stops and returns a `deadline` error
 * after 250 ms of CPU time, because a slow kernel must not stall the agent. Elapsed time does not count, because other
 * processes may keep the machine busy.
 * @param cpuMs returns the CPU time of this thread, in milliseconds
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

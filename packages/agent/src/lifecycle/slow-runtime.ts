import { RuntimeNotResponding } from "@nodekeeper/api/errors";
import { sleepOrAbort } from "@nodekeeper/core/lib";
import type { LifecycleContext } from "./context.ts";
import { runtimeProblems, SLOW_MS } from "./health.ts";
import type { RelistPacing } from "./pacing.ts";
import type { LifecycleState, Progress } from "./progress.ts";

// Logged when a call has taken this long, and again each time the duration has doubled.
const FIRST_MS = 10_000;
// A call counts as slow after 2 s, so a runtime that hangs is reported within 5 s.
const PROBE_MS = 2_000;

/**
 * Every 2 s, until the signal aborts:
 *
 * 1. While the runtime is not responding, logs the duration, calls and pods.
 * 2. Calls the runtime if the relist period is longer, so that a runtime that hangs has a call in flight for the health
 *    check to report. Calls do not overlap, and their results are ignored: relists report errors.
 */
export async function watchRuntime(
  context: LifecycleContext,
  progress: Progress,
  pacing: Pick<RelistPacing, "periodMs">,
  signal: AbortSignal,
): Promise<void> {
  const { clock, runtime } = context;
  const slowness = new SlownessLog(context);
  let probe: Promise<void> | undefined;
  while (!signal.aborted) {
    slowness.observe(progress.state());
    if (!probe && pacing.periodMs > PROBE_MS) {
      probe = runtime
        .version(signal)
        .catch(() => {})
        .then(() => {
          probe = undefined;
        });
    }
    await sleepOrAbort(clock, PROBE_MS, signal);
  }
  await probe;
}

/** Logs when calls start to be slow, each time the duration has doubled, and when they are no longer slow. */
class SlownessLog {
  readonly #log: LifecycleContext["log"];
  #nextMs = FIRST_MS;

  constructor({ log }: Pick<LifecycleContext, "log">) {
    this.#log = log;
  }

  observe(state: LifecycleState): void {
    const waitedMs = longestWait(state);
    if (waitedMs >= this.#nextMs) {
      this.#nextMs = waitedMs * 2;
      const waitedSeconds = Math.round(waitedMs / 1000);
      this.#log.warn(
        { errorId: RuntimeNotResponding.id, waitedSeconds, waitingFor: runtimeProblems(state) },
        "container runtime is not responding",
      );
    } else if (waitedMs < SLOW_MS && this.#nextMs > FIRST_MS) {
      this.#nextMs = FIRST_MS;
      this.#log.info({}, "container runtime is responding again");
    }
  }
}

// Returns the age of the oldest call that has not returned yet, in milliseconds.
function longestWait({ callsInFlight, slowReadings, relist, now }: LifecycleState): number {
  const starts = [...callsInFlight, ...slowReadings].map(({ startedAt }) => startedAt);
  if (relist.inFlight?.phase === "list") starts.push(relist.inFlight.since);
  return starts.length === 0 ? 0 : now - Math.min(...starts);
}

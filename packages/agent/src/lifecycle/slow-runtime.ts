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

/** Logs the duration, calls and pods while the runtime is not responding. Runs until the signal aborts. */
export async function logSlowRuntime(
  { clock, log }: LifecycleContext,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  let nextMs = FIRST_MS;
  while (!signal.aborted) {
    const current = progress.state();
    const waitedMs = longestWait(current);
    if (waitedMs >= nextMs) {
      nextMs = waitedMs * 2;
      const waitedSeconds = Math.round(waitedMs / 1000);
      log.warn(
        { errorId: RuntimeNotResponding.id, waitedSeconds, waitingFor: runtimeProblems(current) },
        "container runtime is not responding",
      );
    } else if (waitedMs < SLOW_MS && nextMs > FIRST_MS) {
      nextMs = FIRST_MS;
      log.info({}, "container runtime is responding again");
    }
    await sleepOrAbort(clock, SLOW_MS, signal);
  }
}

/**
 * Calls the runtime every 2 s if the relist period is longer, so that a runtime that hangs has a call in
 * flight for the health check to report. Calls do not overlap, and their results are ignored: relists report
 * errors. Runs until the signal aborts.
 */
export async function probeRuntime(
  { runtime, clock }: LifecycleContext,
  pacing: Pick<RelistPacing, "periodMs">,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await sleepOrAbort(clock, PROBE_MS, signal);
    if (signal.aborted || pacing.periodMs <= PROBE_MS) continue;
    await runtime.version(signal).catch(() => {});
  }
}

// Returns the age of the oldest call that has not returned yet, in milliseconds.
function longestWait({ callsInFlight, slowReadings, relist, now }: LifecycleState): number {
  const starts = [...callsInFlight, ...slowReadings].map(({ startedAt }) => startedAt);
  if (relist.inFlight?.phase === "list") starts.push(relist.inFlight.since);
  return starts.length === 0 ? 0 : now - Math.min(...starts);
}

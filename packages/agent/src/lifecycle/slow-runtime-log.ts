import type { Clock, Logger } from "@nodekeeper/core/lib";
import { type LifecycleState, runtimeProblems, SLOW_MS } from "./health.ts";

export interface SlowRuntimeLogOptions {
  clock: Clock;
  log: Logger;
  state: () => LifecycleState;
}

// Logged when a call has taken this long, and again each time the duration has doubled.
const FIRST_MS = 10_000;

/** Logs while the runtime does not respond: the duration, calls and pods. */
export class SlowRuntimeLog {
  readonly #options: SlowRuntimeLogOptions;

  constructor(options: SlowRuntimeLogOptions) {
    this.#options = options;
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, state } = this.#options;
    let nextMs = FIRST_MS;
    while (!signal.aborted) {
      const current = state();
      const waitedMs = longestWait(current);
      if (waitedMs >= nextMs) {
        nextMs = waitedMs * 2;
        const waitedSeconds = Math.round(waitedMs / 1000);
        log.warn(
          { errorId: "NK1404", waitedSeconds, waitingFor: runtimeProblems(current) },
          "container runtime is not responding",
        );
      } else if (waitedMs < SLOW_MS && nextMs > FIRST_MS) {
        nextMs = FIRST_MS;
        log.info({}, "container runtime is responding again");
      }
      await clock.sleep(SLOW_MS, signal).catch(() => {});
    }
  }
}

// Age of the oldest call without a response, milliseconds.
function longestWait({ callsInFlight, slowReadings, relist, now }: LifecycleState): number {
  const starts = [...callsInFlight, ...slowReadings].map(({ startedAt }) => startedAt);
  if (relist.inFlight?.phase === "list") starts.push(relist.inFlight.since);
  return starts.length === 0 ? 0 : now - Math.min(...starts);
}

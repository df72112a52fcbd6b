import { type Clock, codeOf, messageOf, sleepOrAbort } from "@nodekeeper/core/lib";
import { type Output, printMessage } from "./output.ts";

const POLL_MS = 1_000;

/** Output, clock and abort signal of a command that may keep running. */
export interface CommandRun {
  output: Output;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Calls `poll` every second until the signal aborts. After its first success, unavailability of the agent is reported
 * on standard error and retried. Earlier errors, and errors of other kinds, are thrown.
 * @param onUnavailable called on each failure that is retried
 */
export async function follow(
  poll: () => Promise<void>,
  { clock, signal }: Omit<CommandRun, "output">,
  onUnavailable: () => void = () => {},
): Promise<void> {
  let hasAnswered = false;
  let isUnavailable = false;
  while (!signal.aborted) {
    try {
      await poll();
      hasAnswered = true;
      isUnavailable = false;
    } catch (error) {
      const mayComeBack = ["unavailable", "deadline", "stopped"].includes(codeOf(error));
      if (!hasAnswered || !mayComeBack) throw error;
      if (!isUnavailable) printMessage(`${messageOf(error)}; retrying`);
      isUnavailable = true;
      onUnavailable();
    }
    await sleepOrAbort(clock, POLL_MS, signal);
  }
}

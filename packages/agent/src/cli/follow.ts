import { type Clock, codeOf, messageOf, sleepOrAbort } from "@nodekeeper/core/lib";
import { printMessage } from "./output.ts";

const POLL_MS = 1_000;

/**
 * Calls `poll` every second until the signal aborts. After its first success, unavailability of the agent is reported
 * on standard error and retried. Earlier errors, and errors of other kinds, are thrown.
 * @param onUnavailable called on each failure that is retried
 */
export async function follow(
  poll: () => Promise<void>,
  clock: Clock,
  signal: AbortSignal,
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

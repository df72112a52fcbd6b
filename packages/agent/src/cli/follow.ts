import { type Clock, codeOf, messageOf } from "@nodekeeper/core/lib";
import { printMessage } from "./output.ts";

const POLL_MS = 1_000;

/**
 * Calls `poll` each second until the signal aborts. After its first success the agent may be unavailable for a time, which
 * is printed to standard error; an earlier error, or one of another kind, is thrown.
 * @param onUnavailable called at each failure
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
    await clock.sleep(POLL_MS, signal).catch(() => {});
  }
}

import { type Clock, codeOf, type Logger } from "@nodekeeper/core/lib";
import { REQUESTED_ROUND_INTERVAL_MS, type RoundRequest } from "../round-pacing.ts";
import type { ServedPlugin } from "./served-plugin.ts";

// A plugin whose call failed may just be stopping, or be restarted behind the same socket.
const RETRY_MS = 30_000;

export interface FollowOptions {
  onRoundRequest?: (request: RoundRequest) => void;
  clock: Clock;
  log: Logger;
}

/**
 * Passes on the rounds that a plugin requests, at most one a second, until its registration ends. Never throws. A plugin
 * that serves no requests, such as any written for katalyst, is asked once.
 */
export async function followRoundRequests(
  { name: plugin, calls, scope }: Pick<ServedPlugin, "name" | "calls" | "scope">,
  { onRoundRequest, clock, log }: FollowOptions,
): Promise<void> {
  const { signal } = scope;
  if (!onRoundRequest || !calls.waitForRequest) return;
  while (!signal.aborted) {
    let pauseMs = REQUESTED_ROUND_INTERVAL_MS;
    try {
      const reason = await calls.waitForRequest(signal);
      onRoundRequest({ plugin, reason });
    } catch (error) {
      if (signal.aborted || codeOf(error) === "unsupported") return;
      log.debug({ err: error, plugin }, "plugin can't be listened to for requests of rounds");
      pauseMs = RETRY_MS;
    }
    await clock.sleep(pauseMs, signal).catch(() => {});
  }
}

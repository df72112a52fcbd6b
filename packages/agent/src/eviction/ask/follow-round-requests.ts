import { type Clock, codeOf, type Logger } from "@nodekeeper/core/lib";
import { REQUESTED_ROUND_INTERVAL_MS, type RoundRequest } from "../round-pacing.ts";
import type { ServedPlugin } from "./served-plugin.ts";

// A plugin whose call failed may be stopping, or restarting behind the same socket.
const RETRY_MS = 30_000;

export interface FollowOptions {
  onRoundRequest?: (request: RoundRequest) => void;
  clock: Clock;
  log: Logger;
}

/**
 * Forwards the round requests of a plugin (`nodekeeper.eviction.v1alpha1.RoundRequests`), at most one per second, until
 * its registration ends. A plugin that returns UNIMPLEMENTED, as those written for katalyst do, is called once. Never
 * throws.
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
      log.debug({ err: error, plugin }, "WaitForRequest failed, it is called again later");
      pauseMs = RETRY_MS;
    }
    await clock.sleep(pauseMs, signal).catch(() => {});
  }
}

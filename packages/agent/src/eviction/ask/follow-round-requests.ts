import { type Clock, codeOf, type Logger, sleepOrAbort } from "@nodekeeper/core/lib";
import { REQUESTED_ROUND_INTERVAL_MS, type RoundPacing } from "../round-pacing.ts";
import type { ServedPlugin } from "./served-plugin.ts";

// Pause after a failed call: the plugin may be stopping, or restarting at the same socket.
const RETRY_MS = 30_000;

export interface FollowOptions {
  /** Undefined to ignore requests. */
  pacing?: Pick<RoundPacing, "request">;
  clock: Clock;
  log: Logger;
}

/**
 * Forwards the round requests of a plugin (`nodekeeper.eviction.v1alpha1.RoundRequests`), at most one per second, until
 * its registration ends. Stops if the plugin returns UNIMPLEMENTED, as plugins written for katalyst do. Never throws.
 */
export async function followRoundRequests(
  { name: plugin, calls, scope }: Pick<ServedPlugin, "name" | "calls" | "scope">,
  { pacing, clock, log }: FollowOptions,
): Promise<void> {
  const { signal } = scope;
  if (!pacing || !calls.waitForRequest) return;
  while (!signal.aborted) {
    let pauseMs = REQUESTED_ROUND_INTERVAL_MS;
    try {
      const reason = await calls.waitForRequest(signal);
      pacing.request({ plugin, reason });
    } catch (error) {
      if (signal.aborted || codeOf(error) === "unsupported") return;
      log.debug({ err: error, plugin }, "WaitForRequest failed, it is called again later");
      pauseMs = RETRY_MS;
    }
    await sleepOrAbort(clock, pauseMs, signal);
  }
}

import { formatDuration, type HealthResult } from "../lib/index.ts";
import type { RelistStatus } from "./relist.ts";

export interface LifecycleState {
  relist: Readonly<RelistStatus>;
  /** When the generator began, and now, monotonic milliseconds. */
  startedAt: number | undefined;
  now: number;
  unhealthyAfterMs: number;
  /** Pods that could not be read when they last changed. */
  stalePods: number;
}

/** Whether pods are still listed. A pod that can't be inspected is stale, and the node healthy. */
export function lifecycleHealth({
  relist,
  startedAt,
  now,
  unhealthyAfterMs,
  stalePods,
}: LifecycleState): HealthResult {
  if (startedAt === undefined) return { ok: false, message: "not running" };
  const since = now - (relist.lastSuccessAt ?? startedAt);
  const ok = since <= unhealthyAfterMs;
  const parts = [
    relist.lastSuccessAt === undefined
      ? `no relist has succeeded in the ${age(since)} since the start`
      : `last relist that succeeded began ${age(since)} ago`,
  ];
  if (!ok) parts[0] += ` (threshold ${age(unhealthyAfterMs)})`;
  if (relist.inFlight) {
    const { phase, since: began, pods } = relist.inFlight;
    const what = phase === "list" ? `list of all pods (${pods} known)` : `inspection of ${pods} changed pods`;
    parts.push(`in flight: ${what} for ${age(now - began)}`);
  }
  if (relist.lastError)
    parts.push(`last error, ${age(now - relist.lastError.at)} ago: ${relist.lastError.message}`);
  if (stalePods > 0) parts.push(`${stalePods} pods can't be read and are stale`);
  return { ok, message: parts.join("; ") };
}

function age(ms: number): string {
  return formatDuration(ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000);
}

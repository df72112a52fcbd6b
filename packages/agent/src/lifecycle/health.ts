import { PodNotInspectable, RuntimeNotResponding, RuntimeUnreachable } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import { type ErrorId, formatDuration, type HealthResult } from "@nodekeeper/core/lib";
import type { LifecycleState, SlowReading } from "./progress.ts";

/** Lists and calls that take this long are reported as slow. */
export const SLOW_MS = 2_000;
const MAX_NAMED = 3;

/**
 * Returns the health of the module. Fails until all pods have been read once, and if the last successful relist started
 * more than `unhealthyAfter` ago. Pods that cannot be inspected are stale and only cause a warning.
 */
export function lifecycleHealth(state: LifecycleState): HealthResult {
  const { relist, startedAt, now, unhealthyAfter } = state;
  const { isListed } = relist;
  if (startedAt === undefined) return { ok: false, message: "not running" };
  const since = now - (relist.lastSuccessAt ?? startedAt);
  const ok = isListed && since <= unhealthyAfter;
  const parts = [
    relist.lastSuccessAt === undefined
      ? `no relist has succeeded since the start ${age(since)} ago`
      : `last successful relist started ${age(since)} ago`,
  ];
  if (!ok && isListed) parts[0] += ` (threshold ${age(unhealthyAfter)})`;
  if (!isListed && relist.lastSuccessAt !== undefined) parts.push("first inspection of all pods in progress");
  parts.push(...inFlight(state), ...slowOf(state), ...failuresOf(state));
  const problems = runtimeProblems(state);
  if (problems.length === 0) return { ok, message: parts.join("; ") };
  return { ok, message: parts.join("; "), warning: problems.join("; "), errorId: idOf(state) };
}

function idOf({ relist, stalePods }: LifecycleState): ErrorId {
  if (relist.lastError) return relist.lastError.id ?? RuntimeUnreachable.id;
  return stalePods > 0 ? PodNotInspectable.id : RuntimeNotResponding.id;
}

/** Returns the current errors and slow calls of the runtime, one line each. */
export function runtimeProblems(state: LifecycleState): string[] {
  const { relist, now } = state;
  const isSlow = relist.inFlight !== undefined && now - relist.inFlight.since >= SLOW_MS;
  return [...(isSlow ? inFlight(state) : []), ...slowOf(state), ...failuresOf(state)];
}

function inFlight({ relist, now }: LifecycleState): string[] {
  if (!relist.inFlight) return [];
  const { phase, since, pods } = relist.inFlight;
  const what = phase === "list" ? `list of all pods (${pods} known)` : `inspection of ${pods} changed pods`;
  return [`in progress: ${what} for ${age(now - since)}`];
}

function slowOf({ slowReadings, callsInFlight, now }: LifecycleState): string[] {
  const calls = callsInFlight
    .filter(({ startedAt }) => now - startedAt >= SLOW_MS)
    .map(({ method, id, startedAt }) => ({
      what: id === undefined ? method : `${method} of ${id}`,
      startedAt,
    }))
    .sort((one, other) => one.startedAt - other.startedAt);
  return [...named("slow", slowReadings, now), ...named("no response yet to", calls, now)];
}

function failuresOf({ relist, stalePods, now }: LifecycleState): string[] {
  const failures: string[] = [];
  if (relist.lastError)
    failures.push(`last error, ${age(now - relist.lastError.at)} ago: ${relist.lastError.message}`);
  if (stalePods > 0) failures.push(`can't inspect ${counted(stalePods, "pod")}, whose status is stale`);
  return failures;
}

function named(heading: string, slow: readonly SlowReading[], now: number): string[] {
  if (slow.length === 0) return [];
  const first = slow.slice(0, MAX_NAMED).map(({ what, startedAt }) => `${what} for ${age(now - startedAt)}`);
  const more = slow.length > MAX_NAMED ? `, and ${slow.length - MAX_NAMED} more` : "";
  return [`${heading}: ${first.join(", ")}${more}`];
}

function age(ms: number): string {
  return formatDuration(ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000);
}

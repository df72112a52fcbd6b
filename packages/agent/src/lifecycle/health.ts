import { type ErrorId, formatDuration, type HealthResult } from "@nodekeeper/core/lib";
import type { CallInFlight } from "../runtime/index.ts";
import type { RelistStatus } from "./relist.ts";
import type { SlowReading } from "./tracker.ts";

/** State of the lifecycle module, for health checks. Times are monotonic milliseconds. */
export interface LifecycleState {
  relist: Readonly<RelistStatus>;
  /** Whether all pods have been read since the start. */
  isListed: boolean;
  /** Start of the generator. */
  startedAt: number | undefined;
  now: number;
  unhealthyAfterMs: number;
  /** Number of pods whose last inspection failed. */
  stalePods: number;
  /** Readings of single pods in progress that are slow, the longest first. */
  slowReadings: readonly SlowReading[];
  /** Calls to the runtime without a response. */
  callsInFlight: readonly CallInFlight[];
}

/** Lists and calls that take longer than this are reported as slow. */
export const SLOW_MS = 2_000;
const MAX_NAMED = 3;

/** Fails if pods were not listed recently. Pods that cannot be inspected are stale and only cause a warning. */
export function lifecycleHealth(state: LifecycleState): HealthResult {
  const { relist, isListed, startedAt, now, unhealthyAfterMs } = state;
  if (startedAt === undefined) return { ok: false, message: "not running" };
  const since = now - (relist.lastSuccessAt ?? startedAt);
  const ok = isListed && since <= unhealthyAfterMs;
  const parts = [
    relist.lastSuccessAt === undefined
      ? `no relist has succeeded since the start ${age(since)} ago`
      : `last successful relist started ${age(since)} ago`,
  ];
  if (!ok && isListed) parts[0] += ` (threshold ${age(unhealthyAfterMs)})`;
  if (!isListed && relist.lastSuccessAt !== undefined) parts.push("first inspection of all pods in progress");
  parts.push(...inFlight(state), ...slowOf(state), ...failuresOf(state));
  const problems = runtimeProblems(state);
  if (problems.length === 0) return { ok, message: parts.join("; ") };
  return { ok, message: parts.join("; "), warning: problems.join("; "), errorId: idOf(state) };
}

function idOf({ relist, stalePods }: LifecycleState): ErrorId {
  if (relist.lastError) return relist.lastError.id ?? "NK1403";
  return stalePods > 0 ? "NK1407" : "NK1404";
}

/** Current errors and slow calls of the runtime, one line each. */
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
  if (stalePods > 0) failures.push(`${stalePods} pods cannot be inspected, their statuses are stale`);
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

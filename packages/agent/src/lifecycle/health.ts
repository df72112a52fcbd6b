import { formatDuration, type HealthResult } from "@nodekeeper/core/lib";
import type { CallInFlight } from "../runtime/index.ts";
import type { RelistStatus } from "./relist.ts";
import type { SlowReading } from "./tracker.ts";

/** What lifecycle knows of its own state. Times are monotonic milliseconds. */
export interface LifecycleState {
  relist: Readonly<RelistStatus>;
  /** Whether all pods have been read since the start. */
  isListed: boolean;
  /** When the generator started. */
  startedAt: number | undefined;
  now: number;
  unhealthyAfterMs: number;
  /** Pods that could not be read when they last changed. */
  stalePods: number;
  /** Readings of single pods that take long, those of the longest first. */
  slowReadings: readonly SlowReading[];
  /** Calls to the runtime that are due an answer and have none. */
  callsInFlight: readonly CallInFlight[];
}

/** A list or a call that takes longer than this is named. */
export const SLOW_MS = 2_000;
const MOST_NAMED = 3;

/** Whether all pods were listed, and lately. A pod that can't be inspected is stale, and the node healthy. */
export function lifecycleHealth(state: LifecycleState): HealthResult {
  const { relist, isListed, startedAt, now, unhealthyAfterMs } = state;
  if (startedAt === undefined) return { ok: false, message: "not running" };
  const since = now - (relist.lastSuccessAt ?? startedAt);
  const ok = isListed && since <= unhealthyAfterMs;
  const parts = [
    relist.lastSuccessAt === undefined
      ? `no relist has succeeded in the ${age(since)} since the start`
      : `last relist that succeeded began ${age(since)} ago`,
  ];
  if (!ok && isListed) parts[0] += ` (threshold ${age(unhealthyAfterMs)})`;
  if (!isListed && relist.lastSuccessAt !== undefined) parts.push("pods are inspected for the first time");
  parts.push(...inFlight(state), ...slowOf(state), ...failuresOf(state));
  const problems = runtimeProblems(state);
  return { ok, message: parts.join("; "), ...(problems.length > 0 ? { warning: problems.join("; ") } : {}) };
}

/** What is wrong with the runtime, or slow, now: one line each; none where nothing is. */
export function runtimeProblems(state: LifecycleState): string[] {
  const { relist, now } = state;
  const isSlow = relist.inFlight !== undefined && now - relist.inFlight.since >= SLOW_MS;
  return [...(isSlow ? inFlight(state) : []), ...slowOf(state), ...failuresOf(state)];
}

function inFlight({ relist, now }: LifecycleState): string[] {
  if (!relist.inFlight) return [];
  const { phase, since, pods } = relist.inFlight;
  const what = phase === "list" ? `list of all pods (${pods} known)` : `inspection of ${pods} changed pods`;
  return [`in flight: ${what} for ${age(now - since)}`];
}

function slowOf({ slowReadings, callsInFlight, now }: LifecycleState): string[] {
  const calls = callsInFlight
    .filter(({ startedAt }) => now - startedAt >= SLOW_MS)
    .map(({ method, id, startedAt }) => ({
      what: id === undefined ? method : `${method} of ${id}`,
      startedAt,
    }))
    .sort((one, other) => one.startedAt - other.startedAt);
  return [...named("slow", slowReadings, now), ...named("no answer yet to", calls, now)];
}

function failuresOf({ relist, stalePods, now }: LifecycleState): string[] {
  const failures: string[] = [];
  if (relist.lastError)
    failures.push(`last error, ${age(now - relist.lastError.at)} ago: ${relist.lastError.message}`);
  if (stalePods > 0) failures.push(`${stalePods} pods can't be read and are stale`);
  return failures;
}

function named(heading: string, slow: readonly SlowReading[], now: number): string[] {
  if (slow.length === 0) return [];
  const first = slow.slice(0, MOST_NAMED).map(({ what, startedAt }) => `${what} for ${age(now - startedAt)}`);
  const more = slow.length > MOST_NAMED ? `, and ${slow.length - MOST_NAMED} more` : "";
  return [`${heading}: ${first.join(", ")}${more}`];
}

function age(ms: number): string {
  return formatDuration(ms < 1_000 ? Math.round(ms) : Math.round(ms / 1_000) * 1_000);
}

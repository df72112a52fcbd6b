import type { Victim } from "./decision.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import { compareText } from "./rank.ts";
import type { EvictionOutcome, RoundInput } from "./round.ts";
import type { EvictionState, PausedPod, PendingEviction, RecentEviction } from "./state.ts";

/** What earlier rounds began and what came of it. */
export type EvictionsUnderWay = Pick<EvictionState, "pending" | "recent" | "paused">;

// Far above what any sane limit counts; a bound for a burst without bound.
const MAX_RECENT = 10_000;

/**
 * Brings what earlier rounds began up to date with outcomes and with the pods that are still there. A victim that is
 * gone, or whose time is up, no longer counts as on its way out. An eviction that failed did not happen, as far as
 * limits go, and its pod is left alone for a while so that the next one gets its turn.
 */
export function settleEvictions(
  input: Pick<RoundInput, "now" | "pods" | "outcomes" | "policy" | "state">,
): EvictionsUnderWay {
  const { now, policy, state } = input;
  const present = new Set(input.pods.map((pod) => pod.uid));
  const outcomes = new Map(
    [...input.outcomes].sort(compareOutcomes).map((outcome) => [outcome.uid, outcome] as const),
  );
  const hasEnded = (uid: string) => outcomes.has(uid) || !present.has(uid);
  const cameToNothing = (uid: string) => present.has(uid) && isFruitless(outcomes.get(uid));

  return {
    pending: state.pending.filter((pod) => !hasEnded(pod.uid) && now < pod.deadline),
    recent: state.recent
      .filter((eviction) => eviction.releasedAt !== null || !cameToNothing(eviction.uid))
      .map((eviction) => released(eviction, hasEnded(eviction.uid), now))
      .filter((eviction) => isRecent(eviction, policy, now)),
    paused: pausedPods(state.paused, [...outcomes.values()], present, policy, now),
  };
}

/** The state of evictions with a round's victims added. */
export function beginEvictions(
  underWay: EvictionsUnderWay,
  victims: readonly Victim[],
  podOf: (uid: string) => EvictionPod,
  policy: EvictionPolicy,
  now: number,
): EvictionsUnderWay {
  const pending = [...underWay.pending];
  const recent = [...underWay.recent];
  for (const victim of victims) {
    const pod = podOf(victim.uid);
    pending.push(pendingEviction(victim, pod, policy, now));
    recent.push({
      uid: pod.uid,
      namespace: pod.namespace,
      ownerUid: pod.owner?.uid ?? null,
      plugin: victim.plugin,
      scope: victim.scope,
      at: now,
      releasedAt: null,
    });
  }
  recent.sort((a, b) => a.at - b.at || compareText(a.uid, b.uid));
  return {
    pending: pending.sort((a, b) => compareText(a.uid, b.uid)),
    recent: recent.slice(-MAX_RECENT),
    paused: underWay.paused,
  };
}

function pendingEviction(
  { order: _order, asks, ...victim }: Victim,
  pod: EvictionPod,
  policy: EvictionPolicy,
  now: number,
): PendingEviction {
  const graceMs = (victim.gracePeriodSeconds ?? pod.gracePeriodSeconds) * 1000;
  const deadline = now + Math.min(graceMs + policy.releaseMarginMs, policy.longestReleaseMs);
  return { ...victim, source: asks[0]!.source, since: now, deadline };
}

function isFruitless(outcome: EvictionOutcome | undefined): boolean {
  return outcome !== undefined && outcome.result !== "gone";
}

function released(eviction: RecentEviction, hasEnded: boolean, now: number): RecentEviction {
  return hasEnded && eviction.releasedAt === null ? { ...eviction, releasedAt: now } : eviction;
}

function isRecent(eviction: RecentEviction, policy: EvictionPolicy, now: number): boolean {
  const forLimits = now - eviction.at < policy.limits.windowMs;
  return forLimits || now - (eviction.releasedAt ?? eviction.at) < policy.cooldownMs;
}

function pausedPods(
  before: readonly PausedPod[],
  outcomes: readonly EvictionOutcome[],
  present: ReadonlySet<string>,
  policy: EvictionPolicy,
  now: number,
): PausedPod[] {
  const paused = new Map(before.map((pod) => [pod.uid, pod]));
  for (const { uid, result, message } of outcomes) {
    if (result === "failed")
      paused.set(uid, { uid, until: now + policy.failedEvictionPauseMs, reason: message });
  }
  return [...paused.values()]
    .filter((pod) => now < pod.until && present.has(pod.uid))
    .sort((a, b) => compareText(a.uid, b.uid));
}

// Of several outcomes of one pod the last in this order counts; `gone` beats all.
function compareOutcomes(a: EvictionOutcome, b: EvictionOutcome): number {
  const weight = { withdrawn: 0, failed: 1, gone: 2 };
  return (
    compareText(a.uid, b.uid) || weight[a.result] - weight[b.result] || compareText(a.message, b.message)
  );
}

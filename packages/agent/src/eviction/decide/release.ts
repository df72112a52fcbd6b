import type { Victim } from "./decision.ts";
import { type EvictionOutcome, outcomeResults } from "./outcome.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import { compareText } from "./rank.ts";
import type { RoundInput } from "./round.ts";
import type { EvictionState, PausedPod, PendingEviction, Pressure, RecentEviction } from "./state.ts";

/** The evictions of earlier rounds, reconciled with their outcomes. */
export interface EvictionsUnderWay extends Pick<EvictionState, "pending" | "recent" | "paused"> {
  /** Pods whose eviction failed recently and whose pause is over. */
  failedBefore: PausedPod[];
  /** Evictions that were sent before a restart of the agent: to be followed, never sent again. */
  resumed: PendingEviction[];
  /** Evictions that were decided before a restart of the agent and never sent: decided again. */
  dropped: PendingEviction[];
  /** Pods that were deleted after the round's pods were observed: while plugins were asked. */
  deleted: ReadonlySet<string>;
}

// How long after its pause a pod whose eviction failed is tried after all others: in pauses, and at least milliseconds.
const REMEMBERED_PAUSES = 10;
const SHORTEST_MEMORY_MS = 10 * 60_000;
// Bounds the state where the burst is unlimited.
const MAX_RECENT = 10_000;

/**
 * Reconciles the evictions of earlier rounds with their outcomes and the existing pods. Pure.
 *
 * 1. An eviction is pending until it has ended, its pod is deleted, or the deadline after its acceptance passes.
 * 2. An eviction that was sent, or may have been, counts for limits and cooldown until its window has passed, whatever
 *    its outcome. An eviction that was not sent does not count.
 * 3. A pod whose eviction failed is not retried during its pause, and for ten times as long after it only if no other pod
 *    can be evicted, so that other pods are tried however many evictions fail.
 * 4. A pod whose eviction has ended with its deletion is not evicted again, though it was observed before.
 * 5. An eviction that was interrupted by a restart of the agent is followed if its pod is terminating; otherwise it was
 *    not sent and is decided again.
 */
export function reconcileEvictions(
  input: Pick<RoundInput, "now" | "pods" | "outcomes" | "policy" | "state">,
): EvictionsUnderWay {
  const { now, policy, state } = input;
  const present = new Map(input.pods.map((pod) => [pod.uid, pod]));
  const outcomes = new Map(
    [...input.outcomes].sort(compareOutcomes).map((outcome) => [outcome.uid, outcome] as const),
  );
  const accepted = new Set(
    state.pending.filter(({ acceptedAt }) => acceptedAt !== null).map(({ uid }) => uid),
  );
  const { resumed, dropped } = reviewInterrupted(state.interrupted, present, policy, now);

  const isPending = ({ uid, deadline }: PendingEviction) =>
    !outcomes.has(uid) && present.has(uid) && (deadline === null || now < deadline);
  const pending = [...state.pending, ...resumed].filter(isPending).sort(compareUids);
  const pendingUids = new Set(pending.map(({ uid }) => uid));
  const droppedUids = new Set(dropped.map(({ uid }) => uid));
  const wasNotSent = ({ uid, releasedAt }: RecentEviction) => {
    if (releasedAt !== null || !present.has(uid)) return false;
    const outcome = outcomes.get(uid);
    return droppedUids.has(uid) || (hasFailed(outcome) && !outcome.sent && !accepted.has(uid));
  };
  const failed = failedPods(state.paused, [...outcomes.values()], present, policy, now);
  const deleted = [...outcomes.values()].filter(({ result }) => result === "terminated");
  return {
    pending,
    resumed,
    dropped,
    deleted: new Set(deleted.map(({ uid }) => uid)),
    recent: state.recent
      .filter((eviction) => !wasNotSent(eviction))
      .map((eviction) =>
        eviction.releasedAt !== null || pendingUids.has(eviction.uid)
          ? eviction
          : { ...eviction, releasedAt: now },
      )
      .filter((eviction) => isRecent(eviction, policy, now)),
    paused: failed.filter(({ until }) => now < until),
    failedBefore: failed.filter(({ until }) => until <= now),
  };
}

function reviewInterrupted(
  interrupted: readonly PendingEviction[],
  present: ReadonlyMap<string, EvictionPod>,
  policy: EvictionPolicy,
  now: number,
): Pick<EvictionsUnderWay, "resumed" | "dropped"> {
  const resumed: PendingEviction[] = [];
  const dropped: PendingEviction[] = [];
  for (const eviction of interrupted) {
    const pod = present.get(eviction.uid);
    if (pod?.deletionTimestamp === null) {
      dropped.push(eviction);
      continue;
    }
    const graceSeconds = eviction.gracePeriodSeconds ?? pod?.gracePeriodSeconds ?? 0;
    resumed.push({ ...eviction, acceptedAt: now, deadline: now + releaseTimeMs(graceSeconds, policy) });
  }
  return { resumed, dropped };
}

/** The time from the acceptance of an eviction to its deadline, milliseconds. */
export function releaseTimeMs(
  graceSeconds: number,
  { releaseMarginMs, longestReleaseMs }: Pick<EvictionPolicy, "releaseMarginMs" | "longestReleaseMs">,
): number {
  return Math.min(graceSeconds * 1000 + releaseMarginMs, longestReleaseMs);
}

/** The state of evictions with a round's victims added. Pure. */
export function startEvictions(
  underWay: EvictionsUnderWay,
  victims: readonly Victim[],
  podOf: (uid: string) => EvictionPod,
  now: number,
): Pick<EvictionState, "pending" | "recent" | "paused"> {
  const pending = [...underWay.pending];
  const recent = [...underWay.recent];
  for (const victim of victims) {
    const pod = podOf(victim.uid);
    pending.push(pendingEviction(victim, now));
    recent.push({
      uid: pod.uid,
      namespace: pod.namespace,
      ownerUid: pod.owner?.uid ?? null,
      plugin: victim.plugin,
      scope: victim.scope,
      ...otherPressures(victim),
      at: now,
      releasedAt: null,
    });
  }
  recent.sort((a, b) => a.at - b.at || compareText(a.uid, b.uid));
  return {
    pending: pending.sort(compareUids),
    recent: recent.slice(-MAX_RECENT),
    paused: [...underWay.paused, ...underWay.failedBefore].sort(compareUids),
  };
}

function pendingEviction(victim: Victim, now: number): PendingEviction {
  const { order: _order, asks, ...eviction } = victim;
  const { source } = asks[0]!;
  const progress = { sendingAt: null, acceptedAt: null, deadline: null };
  return { ...eviction, source, ...otherPressures(victim), since: now, ...progress };
}

// A pod that several pressures requested puts all of them on hold until it is deleted.
function otherPressures({ asks }: Victim): { others?: Pressure[] } {
  const pressures = asks.map(({ plugin, scope, source }) => ({ plugin, scope, source }));
  const [counted, ...others] = new Map(pressures.map((one) => [JSON.stringify(one), one])).values();
  return counted && others.length > 0 ? { others } : {};
}

function hasFailed(outcome: EvictionOutcome | undefined): outcome is EvictionOutcome {
  return outcome?.result === "failed" || outcome?.result === "withdrawn";
}

function isRecent({ at, releasedAt }: RecentEviction, policy: EvictionPolicy, now: number): boolean {
  if (releasedAt === null || now - at < policy.limits.windowMs) return true;
  return now - releasedAt < policy.cooldownMs;
}

function failedPods(
  before: readonly PausedPod[],
  outcomes: readonly EvictionOutcome[],
  present: ReadonlyMap<string, EvictionPod>,
  policy: EvictionPolicy,
  now: number,
): PausedPod[] {
  const paused = new Map(before.map((pod) => [pod.uid, pod]));
  for (const { uid, result, message, budget = null } of outcomes) {
    if (result !== "failed") continue;
    paused.set(uid, { uid, until: now + policy.failedEvictionPauseMs, reason: message, budget });
  }
  const memoryMs = Math.max(REMEMBERED_PAUSES * policy.failedEvictionPauseMs, SHORTEST_MEMORY_MS);
  return [...paused.values()]
    .filter(({ uid, until }) => now < until + memoryMs && present.has(uid))
    .sort(compareUids);
}

function compareUids(a: { uid: string }, b: { uid: string }): number {
  return compareText(a.uid, b.uid);
}

// Of several outcomes of one pod the last in this order counts.
function compareOutcomes(a: EvictionOutcome, b: EvictionOutcome): number {
  const weight = ({ result }: EvictionOutcome) => outcomeResults.indexOf(result);
  return compareText(a.uid, b.uid) || weight(a) - weight(b) || compareText(a.message, b.message);
}

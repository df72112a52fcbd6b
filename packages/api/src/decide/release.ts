import { compareText } from "../text/index.ts";
import type { Victim, Withdrawal } from "./decision.ts";
import { compareOutcomes, type EvictionOutcome, isFinal, type OutcomeResult } from "./outcome.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { RoundInput } from "./round.ts";
import {
  byTime,
  type EvictionState,
  type PausedPod,
  type PendingEviction,
  type Pressure,
  type RecentEviction,
} from "./state.ts";

/** The evictions of earlier rounds, reconciled with their outcomes. */
export interface EvictionsUnderWay extends Pick<EvictionState, "pending" | "recent" | "paused"> {
  /** Pods on the node that a request of an earlier eviction may still evict: see `Victim.sentBefore`. */
  sentBefore: ReadonlySet<string>;
  /** Those of `pending` that put their pressures on hold, and the latest end of the hold; null if unknown. */
  holding: { eviction: PendingEviction; until: number | null }[];
  /** Pods whose eviction failed recently and whose pause has expired. */
  failedBefore: PausedPod[];
  /**
   * Evictions that a restart of the agent interrupted and whose pods are terminating. They are followed and never sent
   * again.
   */
  resumed: PendingEviction[];
  /** Pods that ended with their eviction since the last round. The round may have observed them before. */
  deleted: ReadonlySet<string>;
  /**
   * Pods whose containers were stopped by their eviction since the last round, or may have been. The kubelet may start
   * them again.
   */
  stopped: ReadonlySet<string>;
}

// How long after its pause a pod whose eviction failed is tried last: a multiple of the pause.
const REMEMBERED_PAUSES = 10;
// For how long failures are remembered at least, milliseconds.
const SHORTEST_MEMORY_MS = 10 * 60_000;
// Outcomes that imply the end of the pod.
const endings: ReadonlySet<OutcomeResult> = new Set(["terminated", "superseded", "unknown"]);
// Bounds the state if the burst is unlimited.
const MAX_RECENT = 10_000;

/**
 * Reconciles the evictions of earlier rounds with their outcomes and the existing pods. Pure.
 *
 * 1. An eviction is pending until it has a final outcome. Its pressures are on hold until then, until its pod is
 *    deleted, or until its deadline or the longest release has passed.
 * 2. An eviction counts for limits and cooldown until its window has passed, whatever its outcome. It does not count
 *    if it failed or was withdrawn, no request of it was or may have been accepted (`sent`), and its pod is still on the
 *    node. If a request may have been accepted, the pod is remembered while it is on the node, because it may be
 *    selected again: see `Victim.sentBefore`.
 * 3. A pod whose eviction failed is not retried during its pause. For ten times the pause after that (at least ten
 *    minutes), it is retried only if no other pod can be evicted. Repeated failures therefore do not prevent the
 *    eviction of other pods.
 * 4. A pod that ended with its eviction is not evicted again, even if the round observed it before. A pod whose
 *    containers were stopped is not evicted in the first round after that, which may have observed it before.
 * 5. An eviction that a restart of the agent interrupted and that has no outcome (see `interruptedOutcomes`) is
 *    followed.
 */
export function reconcileEvictions(
  input: Pick<RoundInput, "now" | "pods" | "outcomes" | "policy" | "state">,
): EvictionsUnderWay {
  const { now, policy, state } = input;
  const present = new Map(input.pods.map((pod) => [pod.uid, pod]));
  const outcomes = new Map(
    [...input.outcomes].sort(compareOutcomes).map((outcome) => [outcome.uid, outcome] as const),
  );
  // Calls to stop containers may all have failed before they reached the runtime.
  const accepted = new Set(
    state.pending
      .filter(({ acceptedAt, stopsContainers }) => acceptedAt !== null && !stopsContainers)
      .map(({ uid }) => uid),
  );
  const hasEnded = ({ uid }: { uid: string }) => {
    const outcome = outcomes.get(uid);
    return outcome !== undefined && isFinal(outcome);
  };
  const interrupted = state.interrupted.filter((eviction) => !hasEnded(eviction));
  const resumed = interrupted.map((eviction) => {
    const graceSeconds = eviction.gracePeriodSeconds ?? present.get(eviction.uid)?.gracePeriodSeconds ?? 0;
    const deadline = eviction.deadline ?? now + releaseTimeMs(graceSeconds, policy);
    return { ...eviction, deadline, isSettled: true };
  });

  const pending = [...state.pending.filter((eviction) => !hasEnded(eviction)), ...resumed]
    .map((eviction) => (outcomes.has(eviction.uid) ? { ...eviction, isOverdue: true } : eviction))
    .sort(compareUids);
  const holding = pending
    .map((eviction) => ({ eviction, until: holdEnd(eviction, policy) }))
    .filter(({ eviction: { uid }, until }) => present.has(uid) && (until === null || now < until));
  const holdingUids = new Set(holding.map(({ eviction }) => eviction.uid));
  const wasNotSent = ({ uid, releasedAt }: RecentEviction) => {
    if (releasedAt !== null || !present.has(uid)) return false;
    const outcome = outcomes.get(uid);
    return hasFailed(outcome) && !outcome.sent && !accepted.has(uid);
  };
  const givenUp = input.outcomes.filter((outcome) => hasFailed(outcome) && outcome.sent);
  const sentBefore = [...(state.sentBefore ?? []), ...givenUp].map(({ uid }) => uid);
  const failed = failedPods(input, [...outcomes.values()], present);
  const ended = [...outcomes.values()].filter(({ result }) => endings.has(result));
  // A superseded eviction has stopped none: its pod ended before.
  const stays = ({ result, stopsContainers }: EvictionOutcome) =>
    stopsContainers === true && result !== "superseded";
  const uidsOf = (isStop: boolean) =>
    new Set(ended.filter((outcome) => stays(outcome) === isStop).map(({ uid }) => uid));
  return {
    pending,
    holding,
    resumed,
    deleted: uidsOf(false),
    stopped: uidsOf(true),
    recent: state.recent
      .filter((eviction) => !wasNotSent(eviction))
      .map((eviction) =>
        eviction.releasedAt !== null || holdingUids.has(eviction.uid)
          ? eviction
          : { ...eviction, releasedAt: now },
      )
      .filter((eviction) => isRecent(eviction, policy, now)),
    sentBefore: new Set(sentBefore.filter((uid) => present.has(uid)).sort(compareText)),
    paused: failed.filter(({ until }) => now < until),
    failedBefore: failed.filter(({ until }) => until <= now),
  };
}

function holdEnd({ deadline, acceptedAt, since }: PendingEviction, policy: EvictionPolicy): number | null {
  return deadline && Math.min(deadline, (acceptedAt ?? since) + policy.longestReleaseMs);
}

/**
 * Returns the time from the acceptance of an eviction to its deadline, milliseconds: the grace period and the release
 * margin.
 */
export function releaseTimeMs(
  graceSeconds: number,
  { releaseMarginMs }: Pick<EvictionPolicy, "releaseMarginMs">,
): number {
  return graceSeconds * 1000 + releaseMarginMs;
}

/** Returns the state of evictions with a round's victims added and its withdrawals marked. Pure. */
export function startEvictions(
  underWay: EvictionsUnderWay,
  { victims, withdrawals }: { victims: readonly Victim[]; withdrawals: readonly Withdrawal[] },
  podOf: (uid: string) => EvictionPod,
  now: number,
): Pick<EvictionState, "pending" | "recent" | "sentBefore" | "paused"> {
  const withdrawn = new Set(withdrawals.map(({ uid }) => uid));
  const pending = underWay.pending.map((one) => (withdrawn.has(one.uid) ? { ...one, isSettled: true } : one));
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
  recent.sort(byTime);
  return {
    pending: pending.sort(compareUids),
    recent: recent.slice(-MAX_RECENT),
    sentBefore: [...underWay.sentBefore].map((uid) => ({ uid })),
    paused: [...underWay.paused, ...underWay.failedBefore].sort(compareUids),
  };
}

function pendingEviction(victim: Victim, now: number): PendingEviction {
  const { order: _order, asks, ...eviction } = victim;
  const { source } = asks[0]!;
  const progress = { sendingAt: null, acceptedAt: null, deadline: null };
  return { ...eviction, source, ...otherPressures(victim), since: now, selectedAt: now, ...progress };
}

// If several pressures requested the pod, all of them are on hold until it is deleted.
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
  { state, policy, now }: Pick<RoundInput, "state" | "policy" | "now">,
  outcomes: readonly EvictionOutcome[],
  present: ReadonlyMap<string, EvictionPod>,
): PausedPod[] {
  const paused = new Map(state.paused.map((pod) => [pod.uid, pod]));
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

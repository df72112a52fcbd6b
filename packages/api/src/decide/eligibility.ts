import { type RefusalReason, refusalReasons } from "../reasons/index.ts";
import { LimitCounter, type ReachedLimit } from "./limits.ts";
import type { BudgetStatus } from "./outcome.ts";
import { type EvictionPod, type PodReference, referenceTo } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { EvictionsUnderWay } from "./release.ts";
import type { PausedPod } from "./state.ts";
import { type TriedLast, triedLast } from "./tried-last.ts";

/** Why a candidate can't be evicted now. */
export type IneligibleReason = Extract<
  RefusalReason,
  "terminating" | "stopped" | "pending" | "paused" | "nodeLimit" | "namespaceLimit" | "ownerLimit"
>;

/** A candidate that can't be evicted now, with the reason. */
export interface IneligiblePod extends PodReference {
  reason: IneligibleReason;
  message: string;
  /** When the reason ends, wall milliseconds; null if unknown. */
  until: number | null;
  /** The PodDisruptionBudget that refused its eviction; null if none did. */
  budget: BudgetStatus | null;
}

/** The candidates of a round, split by whether they can be evicted now. Both lists are sorted by UID. */
export interface Eligibility {
  eligible: EvictionPod[];
  ineligible: IneligiblePod[];
  /** Candidates that are offered and evicted only if no other candidate can be. */
  last: TriedLast;
}

/**
 * Splits candidates into those that can be evicted now and those that can't, because they have ended since they were
 * observed, or because their eviction is in progress, failed recently (for example because a PodDisruptionBudget allows
 * no disruption) or would exceed a limit. Pure.
 */
export function eligibilityOf(
  candidates: readonly EvictionPod[],
  underWay: EvictionsUnderWay,
  policy: EvictionPolicy,
  now: number,
): Eligibility {
  const obstacleOf = evictionObstacles(underWay);
  const limits = new LimitCounter(policy.limits, underWay.recent, now);
  const whyNot = (pod: EvictionPod): Obstacle | null => {
    const obstacle = obstacleOf(pod.uid);
    if (obstacle) return obstacle;
    const limit = limits.forbids(pod);
    if (!limit) return null;
    return { ...limit, message: limitText(limit), budget: null };
  };
  const result: Eligibility = { eligible: [], ineligible: [], last: triedLast(candidates, underWay) };
  for (const pod of candidates) {
    const obstacle = whyNot(pod);
    if (obstacle) result.ineligible.push({ ...referenceTo(pod), ...obstacle });
    else result.eligible.push(pod);
  }
  return result;
}

type Obstacle = Omit<IneligiblePod, keyof PodReference>;

/**
 * Returns a function that returns why a pod can't be evicted because of its earlier eviction, regardless of limits: the
 * pod has ended, or its eviction is in progress or failed recently. Null if nothing prevents the eviction. Pure.
 */
export function evictionObstacles(underWay: EvictionsUnderWay): (uid: string) => Obstacle | null {
  const pending = new Map(underWay.pending.map((pod) => [pod.uid, pod]));
  const paused = new Map(underWay.paused.map((pod) => [pod.uid, pod]));
  return (uid) => {
    if (underWay.deleted.has(uid)) {
      return { reason: "terminating", message: refusalReasons.terminating, until: null, budget: null };
    }
    if (underWay.stopped.has(uid)) {
      return { reason: "stopped", message: refusalReasons.stopped, until: null, budget: null };
    }
    const started = pending.get(uid);
    if (started) {
      return { reason: "pending", message: refusalReasons.pending, until: started.deadline, budget: null };
    }
    const failed = paused.get(uid);
    if (!failed) return null;
    const { until, budget } = failed;
    return { reason: "paused", message: pausedText(failed), until, budget };
  };
}

/** For example "its last eviction attempt failed; retry after 2026-11-21T20:28:50.000Z: 429: ...". */
function pausedText({ reason, until }: Pick<PausedPod, "reason" | "until">): string {
  return `${refusalReasons.paused}; retry after ${new Date(until).toISOString()}: ${reason}`;
}

/** For example "limit of evictions per owner reached until 2026-11-21T20:28:50.000Z". */
export function limitText({ reason, until }: ReachedLimit): string {
  return until === null
    ? refusalReasons[reason]
    : `${refusalReasons[reason]} until ${new Date(until).toISOString()}`;
}

import { LimitCounter, type ReachedLimit } from "./limits.ts";
import { type EvictionPod, type PodReference, referenceTo } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import { type RefusalReason, refusalReasons } from "./refusals.ts";
import type { EvictionsUnderWay } from "./release.ts";
import type { BudgetStatus, PausedPod } from "./state.ts";
import { type TriedLast, triedLast } from "./tried-last.ts";

/** Why a candidate can't be evicted now. */
export type IneligibleReason = Extract<
  RefusalReason,
  "pending" | "paused" | "nodeLimit" | "namespaceLimit" | "ownerLimit"
>;

/** A candidate that can't be evicted now, and why. */
export interface IneligiblePod extends PodReference {
  reason: IneligibleReason;
  message: string;
  /** When the reason ends, wall milliseconds; null where that is not known. */
  until: number | null;
  /** The disruption budget that forbade its eviction; null where none did. */
  budget: BudgetStatus | null;
}

/** The candidates of a round by whether they can be evicted now, both sorted by UID. */
export interface Eligibility {
  eligible: EvictionPod[];
  ineligible: IneligiblePod[];
  /** Of all candidates, those that are offered and evicted only when no other can be. */
  last: TriedLast;
}

/**
 * Tells candidates that can be evicted now from those that can't: because their eviction is under way, failed a short
 * while ago (as where a disruption budget allows no disruption), or would exceed a limit.
 */
export function eligibilityOf(
  candidates: readonly EvictionPod[],
  underWay: EvictionsUnderWay,
  policy: EvictionPolicy,
  now: number,
): Eligibility {
  const pending = new Map(underWay.pending.map((pod) => [pod.uid, pod]));
  const paused = new Map(underWay.paused.map((pod) => [pod.uid, pod]));
  const limits = new LimitCounter(policy.limits, underWay.recent, now);
  const whyNot = (pod: EvictionPod): Omit<IneligiblePod, keyof PodReference> | null => {
    const started = pending.get(pod.uid);
    if (started) {
      return { reason: "pending", message: refusalReasons.pending, until: started.deadline, budget: null };
    }
    const failed = paused.get(pod.uid);
    if (failed) {
      const { until, budget } = failed;
      return { reason: "paused", message: pausedText(failed), until, budget };
    }
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

/** "its eviction failed a short while ago, not tried again before 2026-11-21T20:28:50.000Z: 429: ..." */
export function pausedText({ reason, until }: Pick<PausedPod, "reason" | "until">): string {
  return `${refusalReasons.paused}, not tried again before ${new Date(until).toISOString()}: ${reason}`;
}

/** "the pod's owner has lost as many pods as it may for now, until 2026-11-21T20:28:50.000Z" */
export function limitText({ reason, until }: ReachedLimit): string {
  return until === null
    ? refusalReasons[reason]
    : `${refusalReasons[reason]}, until ${new Date(until).toISOString()}`;
}

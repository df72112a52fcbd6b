import type { outcome, ValueOf } from "../openapi/index.ts";
import { compareText } from "../text/index.ts";

/**
 * How an eviction ended. The spellings of `result` are stored in records.
 *
 * - `terminated`: only this counts as evicted by the agent.
 * - `superseded`: the pod was deleted, finished or replaced before a request of the agent was accepted.
 * - `overdue`: not final. The pod is still followed, and another outcome is recorded at its end.
 * - `failed`: not retried for `failedEvictionPauseMs`.
 * - `withdrawn`: cancelled before it was accepted, as far as is known: see `isUncertain`.
 */
export type EvictionOutcome = ValueOf<typeof outcome>;
export type OutcomeResult = EvictionOutcome["result"];

/**
 * The outcomes of evictions, in ascending order of precedence: if a pod has several, the last in this order is how its
 * eviction ended.
 */
export const outcomeResults: readonly OutcomeResult[] = [
  "withdrawn",
  "failed",
  "overdue",
  "unknown",
  "superseded",
  "terminated",
];

/** A PodDisruptionBudget that allows no disruption, from the API server's response. */
export type BudgetStatus = NonNullable<EvictionOutcome["budget"]>;

/** Returns whether an eviction has ended with this outcome. */
export function isFinal({ result }: Pick<EvictionOutcome, "result">): boolean {
  return result !== "overdue";
}

/** What is known of a pod that was selected again: see `Victim.sentBefore`. */
export const earlierRequestText = "a request of an earlier eviction may have been accepted";

/**
 * Returns whether it is not known if a request of a failed or withdrawn eviction, or an earlier one of the pod, was
 * accepted: one was sent, and no response to it arrived. It may still evict the pod.
 */
export function isUncertain({
  result,
  sent,
  sentBefore,
  acceptedAt,
}: Pick<EvictionOutcome, "result" | "sent" | "sentBefore" | "acceptedAt">): boolean {
  if (result !== "failed" && result !== "withdrawn") return false;
  return (sent === true || sentBefore === true) && acceptedAt === undefined;
}

/**
 * Returns whether an eviction or its outcome is that of the selection by the round at this time. Those of older records
 * have no time: they count as those of any selection.
 */
export function isOfSelection({ selectedAt }: Pick<EvictionOutcome, "selectedAt">, at: number): boolean {
  return selectedAt === undefined || selectedAt === at;
}

/** Returns how an eviction ended, and what is known of its requests. */
export function endOf({ result, message, sent, sentBefore, acceptedAt }: EvictionOutcome) {
  return {
    result,
    message,
    ...(sent === undefined ? {} : { sent }),
    ...(sentBefore === undefined ? {} : { sentBefore }),
    ...(acceptedAt === undefined ? {} : { acceptedAt }),
  };
}

/** Orders outcomes by UID. If a pod has several, the last one states how its eviction ended, or that it continues. */
export function compareOutcomes(a: EvictionOutcome, b: EvictionOutcome): number {
  const weight = ({ result }: EvictionOutcome) => outcomeResults.indexOf(result);
  return compareText(a.uid, b.uid) || weight(a) - weight(b) || compareText(a.message, b.message);
}

import { compareText } from "./rank.ts";

/**
 * The outcomes of evictions, in ascending order of precedence: if a pod has several, the last in this order is how its
 * eviction ended.
 */
export const outcomeResults = [
  "withdrawn",
  "failed",
  "overdue",
  "unknown",
  "superseded",
  "terminated",
] as const;
export type OutcomeResult = (typeof outcomeResults)[number];

/** How an eviction ended. */
export interface EvictionOutcome {
  uid: string;
  /** Namespace and name of the pod, which may already be deleted. Undefined in older records. */
  namespace?: string;
  name?: string;
  /**
   * The spellings are stored in records; `readRecord` maps those of earlier versions.
   *
   * - `terminated`: a request of the agent was accepted, and the pod was then deleted, or its containers were stopped
   *   if it is evicted by stopping them. Only this counts as evicted by the agent.
   * - `superseded`: the pod was deleted, finished or replaced before a request of the agent was accepted.
   * - `unknown`: the pod ended after a request was sent, and whether that request was accepted is not recorded.
   * - `overdue`: accepted, but the pod is still terminating after its grace period and the release margin. Not final:
   *   the pod is still followed, and another outcome is recorded at its end.
   * - `failed`: the eviction failed, and is not retried for `failedEvictionPauseMs`.
   * - `withdrawn`: cancelled before it was accepted.
   */
  result: OutcomeResult;
  /** Set if the API server or the runtime accepted the eviction or may have accepted it. */
  sent?: boolean;
  /** When it was accepted, wall milliseconds; undefined if it was not, and in older records. */
  acceptedAt?: number;
  /** When it ended, wall milliseconds; undefined if unknown, and in older records. */
  endedAt?: number;
  /** For operators, for example "429: PodDisruptionBudget default/web allows no disruption now". */
  message: string;
  /** The PodDisruptionBudget that refused the eviction, if one did. */
  budget?: BudgetStatus | null;
}

/** Returns whether an eviction has ended with this outcome. */
export function isFinal({ result }: Pick<EvictionOutcome, "result">): boolean {
  return result !== "overdue";
}

/** Orders outcomes by UID. If a pod has several, the last one states how its eviction ended, or that it continues. */
export function compareOutcomes(a: EvictionOutcome, b: EvictionOutcome): number {
  const weight = ({ result }: EvictionOutcome) => outcomeResults.indexOf(result);
  return compareText(a.uid, b.uid) || weight(a) - weight(b) || compareText(a.message, b.message);
}

/** A PodDisruptionBudget that allows no disruption, from the API server's response. */
export interface BudgetStatus {
  /** For example "default/web"; null if the server did not name it. */
  name: string | null;
  /** The budget's `currentHealthy` and `desiredHealthy`; null if the message does not contain them. */
  currentHealthy: number | null;
  desiredHealthy: number | null;
}

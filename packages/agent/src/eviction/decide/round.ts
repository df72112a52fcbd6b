import type { PluginAnswers, TopAnswers } from "./answers.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { BudgetStatus, EvictionState } from "./state.ts";

/** How an eviction ended. */
export interface EvictionOutcome {
  uid: string;
  /** Namespace and name of the pod, which may already be deleted. Absent in older records. */
  namespace?: string;
  name?: string;
  /**
   * The spellings are stored in records; `readRecord` has those of earlier versions.
   *
   * - `terminated`: the pod is deleted, or its containers have exited where it is evicted by stopping them.
   * - `overdue`: accepted, but the pod is still terminating after its grace period and the release margin.
   * - `failed`: the pod was not evicted, and is not tried again for `failedEvictionPauseMs`.
   * - `withdrawn`: cancelled before it was accepted.
   */
  result: "terminated" | "overdue" | "failed" | "withdrawn";
  /** Whether the API server or the runtime accepted it, or may have; absent for no. */
  sent?: boolean;
  /** For operators: "429: PodDisruptionBudget default/web allows no disruption now". */
  message: string;
  /** The PodDisruptionBudget that refused it, where one did. */
  budget?: BudgetStatus | null;
}

/** The input of a round before GetTopEvictionPods: plain JSON. */
export interface RoundInput {
  /** Milliseconds since the epoch. The times of `state` refer to the same clock: see `stateAt`. */
  now: number;
  nodeName: string;
  /** The pods of this node, candidates or not, in any order. */
  pods: EvictionPod[];
  /** One entry for each registered plugin, in any order. */
  plugins: PluginAnswers[];
  /** Evictions that ended since the previous round. */
  outcomes: EvictionOutcome[];
  policy: EvictionPolicy;
  state: EvictionState;
}

/** The input of `decide`: with the answers to the GetTopEvictionPods calls of `prepareRound`. */
export interface DecideInput extends RoundInput {
  tops: TopAnswers[];
}

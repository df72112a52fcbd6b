import type { PluginAnswers, TopAnswers } from "./answers.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { BudgetStatus, EvictionState } from "./state.ts";

/** How an eviction that an earlier decision asked for has ended. */
export interface EvictionOutcome {
  uid: string;
  /** Of the pod, which may be in no list any more: it was deleted while no agent ran. Absent in older records. */
  namespace?: string;
  name?: string;
  /**
   * `gone`: the pod is deleted, or its containers have exited where stopping them is how it was evicted; not needed for a
   * pod that is no longer among the observed ones. `overdue`: it was sent, and its pod is still terminating after its
   * grace period and the margin. `failed`: it was not evicted, and is not tried again for a while. `withdrawn`: it was
   * called back before it was sent.
   */
  result: "gone" | "overdue" | "failed" | "withdrawn";
  /** Whether the API server or the runtime accepted it, or may have; absent: no. */
  sent?: boolean;
  /** For records: "the disruption budget default/web allows no disruption". */
  message: string;
  /** The disruption budget that forbade it, where one did. */
  budget?: BudgetStatus | null;
}

/** All that is known before a round decides: plain JSON. */
export interface RoundInput {
  /** Milliseconds since the epoch. Times of the state are as of this clock reading: see `stateAt`. */
  now: number;
  nodeName: string;
  /** The pods of this node, candidates or not, in any order. */
  pods: EvictionPod[];
  /** One entry for each registered plugin, in any order. */
  plugins: PluginAnswers[];
  /** What has ended since the round before. */
  outcomes: EvictionOutcome[];
  policy: EvictionPolicy;
  state: EvictionState;
}

/** The input of `decide`: the same, with the answers to the questions of `prepareRound`. */
export interface DecideInput extends RoundInput {
  tops: TopAnswers[];
}

import type { PluginAnswers, TopAnswers } from "./answers.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { EvictionState } from "./state.ts";

/** How an eviction that an earlier decision asked for has ended. */
export interface EvictionOutcome {
  uid: string;
  /**
   * `gone`: the pod is no more, or its containers are, where stopping them is how it was evicted; not needed for a pod
   * that is no longer among the observed ones. `failed`: it was not evicted, and is left alone for a while.
   * `withdrawn`: nothing was begun.
   */
  result: "gone" | "failed" | "withdrawn";
  /** For records: "the disruption budget default/web allows no disruption". */
  message: string;
}

/** All that is known before a round decides: plain JSON. */
export interface RoundInput {
  /** Milliseconds since the epoch. */
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

/** The input of `decide`: the same, with the answers to what `askTop` told to ask. */
export interface DecideInput extends RoundInput {
  tops: TopAnswers[];
}

import type { PluginAnswers, TopAnswers } from "./answers.ts";
import type { EvictionOutcome } from "./outcome.ts";
import type { EvictionPod } from "./pods.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { EvictionState } from "./state.ts";

/** The input of a round before GetTopEvictionPods, as plain JSON. */
export interface RoundInput {
  /** Milliseconds since the epoch. The times in `state` refer to the same clock: see `stateAt`. */
  now: number;
  nodeName: string;
  /** All pods of this node, candidates or not, in any order. */
  pods: EvictionPod[];
  /** One entry for each registered plugin, in any order. */
  plugins: PluginAnswers[];
  /** Evictions that ended since the previous round. */
  outcomes: EvictionOutcome[];
  policy: EvictionPolicy;
  state: EvictionState;
}

/** The input of `decide`, with the answers to the GetTopEvictionPods calls of `prepareRound`. */
export interface DecideInput extends RoundInput {
  tops: TopAnswers[];
}

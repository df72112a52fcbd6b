import type {
  conditionAnswer,
  evictPodsAnswer,
  metType,
  pluginAnswers,
  thresholdAnswer,
  topAnswer,
  topAnswers,
  ValueOf,
} from "../openapi/index.ts";

/** Which of a plugin's thresholds is met; katalyst's `ThresholdMetType`. */
export type MetType = ValueOf<typeof metType>;

/** A condition that a plugin reports, to be set as taints of the Node or its CustomNodeResource. */
export type ConditionAnswer = ValueOf<typeof conditionAnswer>;

/** A plugin's answer to ThresholdMet. Values that are not finite numbers are null. */
export type ThresholdAnswer = ValueOf<typeof thresholdAnswer>;

/** A plugin's answer to GetEvictPods. */
export type EvictPodsAnswer = ValueOf<typeof evictPodsAnswer>;

/** A pod that a plugin named in GetEvictPods. */
export type EvictPodAnswer = EvictPodsAnswer["pods"][number];

/** A plugin's answer to GetTopEvictionPods. The grace period is for all pods. */
export type TopAnswer = ValueOf<typeof topAnswer>;

/** The result of one call: the answer, or the error message. `late`: the deadline was exceeded. */
export type Answered<T> = { answer: T } | { failure: string; late?: true };

/** The answers of one registered plugin in a round, before GetTopEvictionPods. */
export type PluginAnswers = ValueOf<typeof pluginAnswers>;

/** The answer of one plugin to GetTopEvictionPods in a round. */
export type TopAnswers = ValueOf<typeof topAnswers>;

/** Returns the answer; null if the call failed. */
export function answerOf<T>(answered: Answered<T>): T | null {
  return "answer" in answered ? answered.answer : null;
}

import type { EvictPodsAnswer, ThresholdAnswer, TopAnswer } from "../decide/answers.ts";

/** A GetEvictPods answer without pods. */
export const noPods: EvictPodsAnswer = { pods: [], condition: null };

/** A GetTopEvictionPods answer without pods. */
export const noTopPods: TopAnswer = { pods: [], gracePeriodSeconds: null };

/** A ThresholdMet answer: not met. */
export const notMet: ThresholdAnswer = {
  metType: "none",
  scope: "",
  thresholdValue: null,
  observedValue: null,
  operator: "greaterThan",
  gracePeriodSeconds: 0,
  condition: null,
  candidateUids: [],
};

import type { EvictPodsAnswer, ThresholdAnswer, TopAnswer } from "../decide/answers.ts";

/** No pod by name. */
export const noPods: EvictPodsAnswer = { pods: [], condition: null };

/** No pod for a threshold. */
export const noTopPods: TopAnswer = { pods: [], gracePeriodSeconds: null };

/** A threshold that is not met. */
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

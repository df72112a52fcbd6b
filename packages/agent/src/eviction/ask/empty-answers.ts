import type { EvictPodsAnswer, ThresholdAnswer, TopAnswer } from "@nodekeeper/api/decide";

/** A GetEvictPods answer without pods. */
export const noPods: EvictPodsAnswer = { pods: [], condition: null };

/** A GetTopEvictionPods answer without pods. */
export const noTopPods: TopAnswer = { pods: [], gracePeriodSeconds: null };

/** A ThresholdMet answer that reports no threshold as met. */
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

import type { PodReference } from "./pods.ts";

/** Which of a plugin's thresholds is met; katalyst's `ThresholdMetType`. */
export type MetType = "none" | "soft" | "hard";

/** A condition that a plugin reports, to be set as taints of the Node or its CustomNodeResource. */
export interface ConditionAnswer {
  target: "node" | "customNodeResource";
  name: string;
  /** As in the plugin's answer, not validated, for example "NoSchedule" or "reclaimed_cores/NoSchedule". */
  effects: string[];
  met: boolean;
}

/** A plugin's answer to ThresholdMet. Values that are not finite numbers are null. */
export interface ThresholdAnswer {
  metType: MetType;
  scope: string;
  thresholdValue: number | null;
  observedValue: number | null;
  operator: "lessThan" | "greaterThan";
  /** The unit of both values: "bytes", "%" or any other text. Undefined if the plugin sends none. */
  unit?: string;
  /** Seconds, as in the plugin's answer: not validated, may be negative. */
  gracePeriodSeconds: number;
  condition: ConditionAnswer | null;
  /** UIDs of the only pods to offer in GetTopEvictionPods; empty for all candidates. */
  candidateUids: string[];
}

/** A pod that a plugin named in GetEvictPods. */
export interface EvictPodAnswer {
  pod: PodReference;
  reason: string;
  force: boolean;
  /** Seconds, as in the plugin's answer; null for the pod's own grace period. */
  gracePeriodSeconds: number | null;
}

/** A plugin's answer to GetEvictPods. */
export interface EvictPodsAnswer {
  pods: EvictPodAnswer[];
  condition: ConditionAnswer | null;
}

/** A plugin's answer to GetTopEvictionPods. */
export interface TopAnswer {
  pods: PodReference[];
  /** Seconds, as in the plugin's answer, for all pods; null for each pod's own grace period. */
  gracePeriodSeconds: number | null;
}

/** The result of one call: the answer, or the error message. `late`: the deadline was exceeded. */
export type Answered<T> = { answer: T } | { failure: string; late?: true };

/** The answers of one registered plugin in a round, before GetTopEvictionPods. */
export interface PluginAnswers {
  plugin: string;
  evictPods: Answered<EvictPodsAnswer>;
  threshold: Answered<ThresholdAnswer>;
}

/** The answer of one plugin to GetTopEvictionPods in a round. */
export interface TopAnswers {
  plugin: string;
  top: Answered<TopAnswer>;
}

/** Returns the answer; null if the call failed. */
export function answerOf<T>(answered: Answered<T>): T | null {
  return "answer" in answered ? answered.answer : null;
}

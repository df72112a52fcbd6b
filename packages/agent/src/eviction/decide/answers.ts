import type { PodReference } from "./pods.ts";

/** How badly a threshold is crossed. */
export type MetType = "none" | "soft" | "hard";

/** A condition a plugin wants shown on the node or its CustomNodeResource. */
export interface ConditionAnswer {
  target: "node" | "customNodeResource";
  name: string;
  /** As the plugin wrote them: "NoSchedule", "reclaimed_cores/NoSchedule". */
  effects: string[];
  met: boolean;
}

/** A plugin's answer to ThresholdMet. Values that are no finite numbers are null. */
export interface ThresholdAnswer {
  metType: MetType;
  scope: string;
  thresholdValue: number | null;
  observedValue: number | null;
  operator: "lessThan" | "greaterThan";
  /** Of both values, where the plugin gives it: "bytes", "%", any other text. */
  unit?: string;
  /** Seconds; as the plugin said, perhaps negative. */
  gracePeriodSeconds: number;
  condition: ConditionAnswer | null;
  /** Where there are any, only these pods are offered to GetTopEvictionPods. */
  candidateUids: string[];
}

/** A pod that a plugin named in GetEvictPods. */
export interface EvictPodAnswer {
  pod: PodReference;
  reason: string;
  force: boolean;
  /** As the plugin said; null is the pod's own. */
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
  /** As the plugin said, for all of them; null is each pod's own. */
  gracePeriodSeconds: number | null;
}

/** What came back from one call: the answer, or why there is none. */
export type Answered<T> = { answer: T } | { failure: string };

/** What one registered plugin said in this round, before GetTopEvictionPods. */
export interface PluginAnswers {
  plugin: string;
  evictPods: Answered<EvictPodsAnswer>;
  threshold: Answered<ThresholdAnswer>;
}

/** What one plugin said to GetTopEvictionPods, in this round. */
export interface TopAnswers {
  plugin: string;
  top: Answered<TopAnswer>;
}

/** The answer, or null where the call failed. */
export function answerOf<T>(answered: Answered<T>): T | null {
  return "answer" in answered ? answered.answer : null;
}

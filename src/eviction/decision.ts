import type { ThresholdAnswer } from "./answers.ts";
import type { Exclusion } from "./candidates.ts";
import type { MergedCondition } from "./conditions.ts";
import type { PodReference, QosClass, QosLevel } from "./pods.ts";
import type { RefusalReason } from "./refusals.ts";
import type { AskSource, EvictionKind, EvictionState } from "./state.ts";
import type { ConditionProblem, WantedTaints } from "./taints.ts";

/** A plugin's wish for one pod, checked. */
export interface Ask {
  plugin: string;
  source: AskSource;
  kind: EvictionKind;
  scope: string;
  reason: string;
  /** The threshold that led to it; null for pods of GetEvictPods. */
  threshold: Pick<ThresholdAnswer, "thresholdValue" | "observedValue" | "operator"> | null;
  /** Seconds, checked; null is the pod's own. */
  gracePeriodSeconds: number | null;
  /** What was wrong with the grace period wished for. */
  graceProblem: string | null;
}

/** A pod whose eviction shall begin now. */
export interface Victim extends PodReference {
  /** From 1, in the order in which they go. */
  order: number;
  kind: EvictionKind;
  /** The plugin it counts for, and its scope. */
  plugin: string;
  scope: string;
  reason: string;
  /** Seconds; null is the pod's own, and nothing shall be sent. */
  gracePeriodSeconds: number | null;
  /** All wishes for it, the one it counts for first. */
  asks: Ask[];
}

/** Something that was asked for and not granted. */
export interface Refusal extends PodReference {
  plugin: string;
  reason: RefusalReason;
  message: string;
}

/** `waiting`: it goes once the burst has room, if it is still asked for then. */
export type CandidateOutcome = "victim" | "waiting" | "refused" | "notAsked";

/** Where a candidate stood among the others, and what became of it. */
export interface RankedCandidate extends PodReference {
  /** 1 is the least important. */
  rank: number;
  qosLevel: QosLevel;
  qosClass: QosClass;
  priority: number;
  /** Of the wish that counts; null where nobody asked for it. */
  scope: string | null;
  kind: EvictionKind | null;
  outcome: CandidateOutcome;
  /** One sentence: why it goes, or why not. */
  why: string;
}

/** A pod of an earlier decision that shall not go after all. */
export interface Withdrawal extends PodReference {
  /** `queued`: it only waited for a place in the burst. `begun`: it was handed over; told each round until it has ended. */
  stage: "queued" | "begun";
  reason: string;
}

/** A pod to be told that it may have to go soon. */
export interface Notification extends PodReference {
  plugin: string;
  reason: string;
}

/** A plugin whose threshold is met, and since when. */
export interface MetThreshold extends Omit<ThresholdAnswer, "condition" | "candidateUids"> {
  plugin: string;
  since: number;
  /** Whether it has been met for its grace period. */
  confirmed: boolean;
}

/** A call to a plugin that had no answer. */
export interface CallFailure {
  plugin: string;
  call: "getEvictPods" | "thresholdMet" | "getTopEvictionPods";
  failure: string;
}

/** All that a round decided: plain JSON. */
export interface Decision {
  victims: Victim[];
  /** Who would have gone as well if no plugin were in dry run. */
  dryRunVictims: Victim[];
  /** Every candidate, the least important first. */
  ranking: RankedCandidate[];
  exclusions: Exclusion[];
  /** At most 200 for each plugin; `refusalCounts` counts all. */
  refusals: Refusal[];
  refusalCounts: Partial<Record<RefusalReason, number>>;
  withdrawals: Withdrawal[];
  notifications: Notification[];
  thresholds: MetThreshold[];
  conditions: MergedCondition[];
  taints: WantedTaints;
  conditionProblems: ConditionProblem[];
  /** Plugins of which a call failed, sorted, with the reason. */
  failures: {
    plugin: string;
    call: "getEvictPods" | "thresholdMet" | "getTopEvictionPods";
    failure: string;
  }[];
  state: EvictionState;
}

/** One GetTopEvictionPods call to make. */
export interface TopQuestion {
  plugin: string;
  scope: string;
  /** 1 for a hard threshold, 0 for a soft one. */
  topN: number;
  /** The candidates to offer, sorted; all of them where null. */
  candidateUids: string[] | null;
}

import type { ThresholdAnswer } from "./answers.ts";
import type { Exclusion } from "./candidates.ts";
import type { MergedCondition } from "./conditions.ts";
import type { PodReference, QosClass, QosLevel } from "./pods.ts";
import type { RefusalReason } from "./refusals.ts";
import type { AskSource, EvictionKind, EvictionState, PendingEviction } from "./state.ts";
import type { ConditionProblem, WantedTaints } from "./taints.ts";

/** A plugin's request to evict one pod, checked. */
export interface Ask {
  plugin: string;
  source: AskSource;
  kind: EvictionKind;
  scope: string;
  reason: string;
  /** The threshold that led to it; null for pods of GetEvictPods. */
  threshold: Pick<ThresholdAnswer, "thresholdValue" | "observedValue" | "operator" | "unit"> | null;
  /** Seconds, checked; null is the pod's own. */
  gracePeriodSeconds: number | null;
  /** What was wrong with the requested grace period. */
  graceProblem: string | null;
  /** Absent: the plugin. `ranking`: the plugin named no pod that can be evicted, so the lowest-ranked one was taken. */
  selectedBy?: "ranking";
}

/** A pod whose eviction starts now. */
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
  /** All requests for it, the one it counts for first. */
  asks: Ask[];
}

/** Something that was asked for and not granted. */
export interface Refusal extends PodReference {
  plugin: string;
  reason: RefusalReason;
  message: string;
}

/**
 * `waiting`: it is evicted once the burst has room, if it is still asked for then. `ineligible`: no plugin requested it,
 * and none could have: see `eligibilityOf`.
 */
export type CandidateOutcome = "victim" | "waiting" | "refused" | "ineligible" | "notAsked";

/** Where a candidate stood among the others, and what was decided about it. */
export interface RankedCandidate extends PodReference {
  /** 1 is the least important. */
  rank: number;
  qosLevel: QosLevel;
  qosClass: QosClass;
  priority: number;
  /** Of the request that counts; null where no plugin requested it. */
  scope: string | null;
  kind: EvictionKind | null;
  outcome: CandidateOutcome;
  /** One sentence: why it is evicted, or why not. */
  why: string;
}

/** A pod of an earlier decision that shall not go after all. */
export interface Withdrawal extends PodReference {
  /** `queued`: it only waited for a place in the burst. `begun`: it was handed over; repeated each round until it has ended. */
  stage: "queued" | "begun";
  reason: string;
}

/** A pod to be notified that it may be evicted soon. */
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
  /** Why its plugin was not asked for a pod although it is confirmed; null where it was asked. */
  held: HeldThreshold | null;
}

/** Why a confirmed threshold takes no pod now. */
export type HeldReason = "pendingRelease" | "cooldown" | "nodeLimit" | "noEligiblePod";

/** What a confirmed threshold waits for. */
export interface HeldThreshold {
  reason: HeldReason;
  /** When it ends at the latest, wall milliseconds; null where that is not known. */
  until: number | null;
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
  /** Pods that would be evicted as well if no plugin were in dry run. */
  dryRunVictims: Victim[];
  /** Every candidate, the least important first. */
  ranking: RankedCandidate[];
  exclusions: Exclusion[];
  /** At most 200 for each plugin; `refusalCounts` counts all. */
  refusals: Refusal[];
  refusalCounts: Partial<Record<RefusalReason, number>>;
  withdrawals: Withdrawal[];
  notifications: Notification[];
  /** Evictions of an agent before this one that are under way: to be followed, never sent again. */
  resumed: PendingEviction[];
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
  /** The candidates to offer, sorted: only those that can be evicted now. Null: all candidates. */
  candidateUids: string[] | null;
  /** What is known of candidates that are not offered, and of workloads that have lost pods lately. */
  records?: readonly CandidateRecord[];
}

/** How many evictions of a workload were decided within a stretch of time. */
export interface EvictionBucket {
  /** When it starts, seconds since the epoch. */
  time: number;
  /** Seconds. */
  duration: number;
  count: number;
}

/**
 * What GetTopEvictionPods reports of a candidate besides the pod itself, as katalyst's `EvictionRecord` has it. The
 * numbers of the budget are 0 where they are not known.
 */
export interface CandidateRecord {
  uid: string;
  hasPdb: boolean;
  disruptionsAllowed: number;
  currentHealthy: number;
  desiredHealthy: number;
  /** Evictions of the pod's owner, or of the pod alone where it has none, oldest first. */
  buckets: EvictionBucket[];
}

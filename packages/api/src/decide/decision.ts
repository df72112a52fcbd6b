import type { ThresholdAnswer } from "./answers.ts";
import type { Exclusion } from "./candidates.ts";
import type { MergedCondition } from "./conditions.ts";
import type { PodReference, QosClass, QosLevel } from "./pods.ts";
import type { RefusalReason } from "./refusals.ts";
import type { AskSource, EvictionKind, EvictionState, PendingEviction } from "./state.ts";
import type { ConditionProblem, DesiredTaints } from "./taints.ts";

/** A plugin's checked request to evict one pod. */
export interface Ask {
  plugin: string;
  source: AskSource;
  kind: EvictionKind;
  scope: string;
  reason: string;
  /** The threshold that is met; null for pods of GetEvictPods. */
  threshold: Pick<ThresholdAnswer, "thresholdValue" | "observedValue" | "operator" | "unit"> | null;
  /** Seconds, validated; null for the pod's own grace period. */
  gracePeriodSeconds: number | null;
  /** Why the requested grace period was changed; null if it was not. */
  graceProblem: string | null;
  /**
   * `ranking`: the plugin named only pods that can't be evicted, so the lowest-ranked pod was selected. Undefined if
   * the plugin selected the pod.
   */
  selectedBy?: "ranking";
  /** Why the ranking selected the pod, as data; `reason` has the text. Undefined in records of earlier versions. */
  fallback?: Fallback;
}

/** Why the ranking selected a pod. */
export interface Fallback {
  /** The number of consecutive rounds in which the plugin named only pods that can't be evicted. */
  rounds: number;
  /** Another UID that the plugin named with the same namespace and name; undefined if there is none. */
  namesakeUid?: string;
}

/** A pod whose eviction starts now. */
export interface Victim extends PodReference {
  /** Position in the order of eviction, from 1. */
  order: number;
  kind: EvictionKind;
  /** The plugin of the first request. The eviction counts for this plugin and its scope. */
  plugin: string;
  scope: string;
  reason: string;
  /** Seconds; null for the pod's own grace period, in which case none is sent. */
  gracePeriodSeconds: number | null;
  /** All requests for the pod. The first one determines the eviction. */
  asks: Ask[];
}

/** A request that was not granted. */
export interface Refusal extends PodReference {
  plugin: string;
  reason: RefusalReason;
  message: string;
}

/**
 * The outcome of a round for one candidate. The spellings are stored in records.
 *
 * - `victim`: its eviction starts.
 * - `waiting`: queued because the burst is used up; evicted in a later round if it is still requested then.
 * - `refused`: requested, but not evicted.
 * - `ineligible`: not requested, and can't be evicted now: see `eligibilityOf`.
 * - `notAsked`: not requested.
 */
export type CandidateOutcome = "victim" | "waiting" | "refused" | "ineligible" | "notAsked";

/** A candidate's rank, and the decision about it. */
export interface RankedCandidate extends PodReference {
  /** From 1, the first to be evicted. */
  rank: number;
  qosLevel: QosLevel;
  qosClass: QosClass;
  priority: number;
  /** The scope of the request that the decision is based on; null if no plugin requested the pod. */
  scope: string | null;
  kind: EvictionKind | null;
  outcome: CandidateOutcome;
  /** Why it is evicted, or why not; one sentence. */
  why: string;
}

/** A pod selected in an earlier round whose eviction is cancelled. */
export interface Withdrawal extends PodReference {
  /**
   * `queued`: it waited because of the burst limit. `started`: its eviction was started; the withdrawal is repeated
   * each round until the eviction has ended. The spellings are stored in records.
   */
  stage: "queued" | "started";
  reason: string;
}

/** A pod to be notified of a soft eviction request. */
export interface Notification extends PodReference {
  plugin: string;
  reason: string;
}

/** A threshold that is met, and since when. */
export interface MetThreshold extends Omit<ThresholdAnswer, "condition" | "candidateUids"> {
  plugin: string;
  since: number;
  /** Whether it has been met for its grace period. */
  confirmed: boolean;
  /** Why GetTopEvictionPods was not called although the threshold is confirmed; null if it was called. */
  held: HeldThreshold | null;
  /**
   * Why no pod may be selected although the threshold is hard and confirmed. Undefined if a pod may be selected, or if
   * the threshold waits for the last victim.
   */
  unserved?: UnservedThreshold;
}

/**
 * Why no pod may be selected for a confirmed hard threshold. The spellings are stored in records.
 *
 * - `failed`, `late`: GetTopEvictionPods failed, or exceeded its deadline.
 * - `namedNone`: the plugin named no pod.
 * - `namedIneligible`: the plugin named only pods that can't be evicted, in fewer than three consecutive rounds so far.
 * - `fallbackOff`, `scopeUnknown`: like `namedIneligible`, and the ranking must not select another pod: the fallback is
 *   turned off for the plugin, or it is unknown which pods belong to the scope.
 * - `noEligiblePod`, `nodeLimit`: no candidate can be evicted now, or the node's limit is reached.
 */
export type UnservedReason = (typeof unservedReasons)[number];
export const unservedReasons = [
  "failed",
  "late",
  "namedNone",
  "namedIneligible",
  "fallbackOff",
  "scopeUnknown",
  "noEligiblePod",
  "nodeLimit",
] as const;

/** A confirmed hard threshold for which no pod may be selected. */
export interface UnservedThreshold {
  reason: UnservedReason;
  /** For example "named 2 pods, none can be evicted now (1 with an unknown UID)". */
  message: string;
  /** Since when no pod may be selected for the plugin's threshold, even if the reason has changed since. */
  since: number;
}

/** Why a confirmed threshold selects no pod now. */
export type HeldReason = "pendingRelease" | "cooldown" | "nodeLimit" | "noEligiblePod";

/** Why a confirmed threshold is on hold, and until when. */
export interface HeldThreshold {
  reason: HeldReason;
  /** Latest end of the hold, wall milliseconds; null if unknown. */
  until: number | null;
}

/** A failed call to a plugin. */
export interface CallFailure {
  plugin: string;
  call: "getEvictPods" | "thresholdMet" | "getTopEvictionPods";
  failure: string;
  /** Set if the call exceeded its deadline. */
  late?: true;
}

/** The decision of a round: plain JSON. */
export interface Decision {
  victims: Victim[];
  /** The additional pods that would be evicted if no plugin were in dry run. */
  dryRunVictims: Victim[];
  /** All candidates in rank order. */
  ranking: RankedCandidate[];
  exclusions: Exclusion[];
  /** At most 200 per plugin; `refusalCounts` counts all. */
  refusals: Refusal[];
  refusalCounts: Partial<Record<RefusalReason, number>>;
  withdrawals: Withdrawal[];
  notifications: Notification[];
  /** Evictions sent before a restart of the agent. They are followed and never sent again. */
  resumed: PendingEviction[];
  thresholds: MetThreshold[];
  conditions: MergedCondition[];
  taints: DesiredTaints;
  conditionProblems: ConditionProblem[];
  /** Failed calls, sorted by plugin. */
  failures: CallFailure[];
  state: EvictionState;
}

/** One GetTopEvictionPods call to make. */
export interface TopQuestion {
  plugin: string;
  scope: string;
  /** 1 for a hard threshold, 0 for a soft one. */
  topN: number;
  /** UIDs of the candidates to offer, sorted: only those that can be evicted now. Null for all candidates. */
  candidateUids: string[] | null;
  /** Records of candidates that are not offered or are tried last, and of those whose owner lost pods recently. */
  records?: readonly CandidateRecord[];
}

/** The number of evictions of a workload decided within a time window. */
export interface EvictionBucket {
  /** Start of the window, seconds since the epoch. */
  time: number;
  /** Seconds. */
  duration: number;
  count: number;
}

/**
 * katalyst's `EvictionRecord` of a candidate in a GetTopEvictionPods request. Unknown counts of the PodDisruptionBudget
 * are 0.
 */
export interface CandidateRecord {
  uid: string;
  hasPdb: boolean;
  disruptionsAllowed: number;
  currentHealthy: number;
  desiredHealthy: number;
  /** Evictions of pods of the same owner, oldest first; of only this pod if it has no owner. */
  buckets: EvictionBucket[];
}

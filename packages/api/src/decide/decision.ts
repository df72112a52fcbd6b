import type { callFailure, decision, refusal, ValueOf, victim, withdrawal } from "../openapi/index.ts";

/** The decision of a round: plain JSON. Fields are described in the schema, as those of all recorded types. */
export type Decision = ValueOf<typeof decision>;

/** A pod whose eviction starts now. */
export type Victim = ValueOf<typeof victim>;

/** A plugin's checked request to evict one pod. */
export type Ask = Victim["asks"][number];

/** A request that was not granted. */
export type Refusal = ValueOf<typeof refusal>;

/** A candidate's rank, and the decision about it. */
export type RankedCandidate = Decision["ranking"][number];

/** The outcome of a round for one candidate. The spellings are stored in records. `ineligible`: see `eligibilityOf`. */
export type CandidateOutcome = RankedCandidate["outcome"];

/** A pod selected in an earlier round whose eviction is cancelled. The spellings of `stage` are stored in records. */
export type Withdrawal = ValueOf<typeof withdrawal>;

/** A pod to be notified of a soft eviction request. */
export type Notification = Decision["notifications"][number];

/** A threshold that is met, and since when. */
export type MetThreshold = Decision["thresholds"][number];

/** A confirmed hard threshold for which no pod may be selected. */
export type UnservedThreshold = NonNullable<MetThreshold["unserved"]>;

/** Why a confirmed threshold is on hold, and until when. */
export type HeldThreshold = NonNullable<MetThreshold["held"]>;

/** Why a confirmed threshold selects no pod now. */
export type HeldReason = HeldThreshold["reason"];

/** A failed call to a plugin. */
export type CallFailure = ValueOf<typeof callFailure>;

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
  /**
   * Evictions of pods of the same owner within the window of the limits, oldest first; of only this pod if it has no
   * owner.
   */
  buckets: EvictionBucket[];
}

import type { Victim, Withdrawal } from "./decide/decision.ts";
import type { EvictionOutcome } from "./decide/round.ts";
import type { Acceptance, PendingEviction } from "./decide/state.ts";
import type { WantedTaints } from "./decide/taints.ts";
import type { EncodablePod } from "./observe/observed-pod.ts";

// How the parts of eviction know each other: the round uses them, each is built and tested by itself.

/** The pods of this node as the API server has them, kept by a watch. */
export interface NodePods {
  /** Whether a whole list has come; before that nothing is known. */
  readonly isSynced: boolean;
  list(): readonly EncodablePod[];
  get(uid: string): EncodablePod | undefined;
  /** Calls back with the UID of each pod that goes, or that was replaced by another of its name. Gives the way to stop. */
  onGone(listener: (uid: string) => void): () => void;
}

/** One thing that happened on the way of an eviction, for the records. */
export interface EvictionStep {
  uid: string;
  /** Wall milliseconds. */
  at: number;
  /** "POST eviction: 429, disruption budget default/web", "container app died with 143", "pod deleted". */
  message: string;
}

/** Sends evictions and follows each to its end; the only one that evicts. */
export interface Evictor {
  /** Takes a decision's victims. One that is under way already continues as it is. */
  begin(victims: readonly Victim[], roundId: number): void;
  /** Stops what has not been sent yet; what was sent goes on. */
  withdraw(withdrawals: readonly Withdrawal[]): void;
  /** Follows what an agent before this one sent, without sending it again. */
  resume(pending: readonly PendingEviction[]): void;
  /** Calls back with monotonic times when an eviction is accepted. Gives the way to stop. */
  onAccepted(listener: (acceptance: Acceptance) => void): () => void;
  /** What has ended since the last call. */
  takeOutcomes(): EvictionOutcome[];
  /** What happened since the last call. */
  takeSteps(): EvictionStep[];
}

/** Keeps the taints of the Node and its CustomNodeResource in step with conditions. */
export interface Tainter {
  /**
   * Says which of our taints shall be there; called each round.
   * @param isComplete whether none of ours shall be there besides. Until the first whole round after a start nobody
   * knows, and what is there stays.
   */
  want(taints: WantedTaints, isComplete: boolean): void;
}

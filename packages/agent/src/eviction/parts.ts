import type { Victim, Withdrawal } from "./decide/decision.ts";
import type { EvictionOutcome } from "./decide/outcome.ts";
import type { EvictionProgress, PendingEviction } from "./decide/state.ts";
import type { DesiredTaints } from "./decide/taints.ts";
import type { EncodablePod } from "./observe/observed-pod.ts";

// Interfaces between the parts of eviction.

/** The pods of this node at the API server, kept by a watch. */
export interface NodePods {
  /** Whether the first list is complete; before that the pods are not known. */
  readonly isSynced: boolean;
  list(): readonly EncodablePod[];
  get(uid: string): EncodablePod | undefined;
  /** Calls `listener` with the UID of each pod that is deleted or replaced by another of its name. Returns the unsubscribe function. */
  onDeleted(listener: (uid: string) => void): () => void;
}

/** A recorded step of an eviction. */
export interface EvictionStep {
  uid: string;
  /** Wall milliseconds. */
  at: number;
  /** "POST eviction: accepted", "container app exited with code 143", "pod deleted". */
  message: string;
}

/** Sends evictions and follows each to its end. Pods are evicted nowhere else. */
export interface Evictor {
  /** Starts the evictions of a decision's victims. An eviction that is already in progress continues unchanged. */
  start(victims: readonly Victim[], roundId: number): void;
  /** Cancels evictions that have not been accepted; accepted ones continue. */
  withdraw(withdrawals: readonly Withdrawal[]): void;
  /**
   * Follows evictions that were accepted, or whose pods are terminating, before a restart of the agent. None is sent again,
   * and each has a final outcome at its end.
   */
  resume(pending: readonly PendingEviction[]): void;
  /**
   * Calls `listener` right before the first request of an eviction is sent, and when one is accepted or its pod is found
   * terminating; times are monotonic. Returns the unsubscribe function.
   */
  onProgress(listener: (progress: EvictionProgress) => void): () => void;
  /** Why the agent can't evict any pod, as a missing right; undefined if none is known. */
  readonly forbidden: string | undefined;
  /** Counts, logs and marks the outcome of an eviction that a restart interrupted and that is not followed. */
  reportInterrupted(eviction: PendingEviction, outcome: EvictionOutcome): void;
  /** Returns and clears the outcomes since the last call. */
  takeOutcomes(): EvictionOutcome[];
  /** Returns and clears the steps since the last call. */
  takeSteps(): EvictionStep[];
}

/** Reconciles the taints of the Node and its CustomNodeResource with conditions. */
export interface Tainter {
  /**
   * Sets the desired taints; called each round.
   * @param isComplete whether the agent's other taints are removed. False until the first complete round after a start
   * (see `TaintGate`): until then existing taints stay.
   */
  setDesired(taints: DesiredTaints, isComplete: boolean): void;
  /** Leaves all taints as they are until the next `setDesired`: none is added, restored or removed. */
  suspend(): void;
}

/** A taint of a Node; fields that are not read are kept. */
export interface LiveTaint {
  key?: string;
  effect?: string;
  value?: unknown;
  timeAdded?: string;
  [field: string]: unknown;
}

/** A Node's taints, and which of them the agent added, as "key:effect". */
export interface LiveTaints {
  taints: readonly LiveTaint[];
  /** Taints that are proven to be the agent's: see `readNodeTaints` of act/node-taints.ts. */
  own: ReadonlySet<string>;
  /** What the annotation lists, if it is proven to be the agent's; it may differ from `own`. */
  listed: ReadonlySet<string>;
}

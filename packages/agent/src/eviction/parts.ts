import type { DesiredTaints } from "@nodekeeper/api/decide";
import type { EncodablePod } from "./observe/observed-pod.ts";

// Interfaces between the parts of eviction.

/** The pods of this node at the API server, kept by a watch. */
export interface NodePods {
  /** Whether the first list is complete. Before that the pods are unknown. */
  readonly isSynced: boolean;
  list(): readonly EncodablePod[];
  get(uid: string): EncodablePod | undefined;
  /**
   * Removes a pod that the API server no longer has. The watch may not report that for minutes, if its connection is
   * half open.
   */
  forget(uid: string): void;
  /**
   * Calls `listener` with the UID of each pod that is deleted, forgotten, or replaced by another pod of the same name.
   * Returns a function that unsubscribes.
   */
  onDeleted(listener: (uid: string) => void): () => void;
}

/** Reconciles the taints of the Node and its CustomNodeResource with conditions. */
export interface Tainter {
  /**
   * Sets the desired taints; called each round.
   * @param isComplete whether to remove the agent's other taints. False until the first complete round after a start
   * (see `TaintGate`): existing taints stay until then.
   */
  setDesired(taints: DesiredTaints, isComplete: boolean): void;
  /** Leaves all taints unchanged until the next `setDesired`: none is added, restored or removed. */
  suspend(): void;
}

/** A taint of a Node. Fields that the agent does not read are preserved. */
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
  /** The taints proven to be the agent's: see `readNodeTaints` in act/node-taints.ts. */
  own: ReadonlySet<string>;
  /** The annotation's list, if it is proven to be the agent's. May differ from `own`. */
  listed: ReadonlySet<string>;
}

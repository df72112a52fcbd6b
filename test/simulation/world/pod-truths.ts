import type { KubeObject } from "@nodekeeper/core/kube";

/** Who ended a pod: the first that deleted or evicted it, or that reported its final phase. */
export interface PodTruth {
  readonly uid: string;
  readonly name: string;
  /** Virtual milliseconds at which it was first there, bound to the node. */
  readonly createdAt: number;
  endedBy: "ours" | "other" | undefined;
  /** Virtual milliseconds at which somebody ended it, at the latest. */
  endedAt: number;
  /** Virtual milliseconds at which its object was gone. */
  goneAt: number | undefined;
}

/** All pods that ever were on the node, and who ended them. */
export class PodTruths {
  readonly all = new Map<string, PodTruth>();
  readonly #pods: () => readonly KubeObject[];
  readonly #isStopped: (uid: string) => boolean;
  readonly #now: () => number;

  /**
   * @param pods returns the pods that the API server has now
   * @param isStopped returns whether the agent has stopped the containers of a pod
   */
  constructor(pods: () => readonly KubeObject[], isStopped: (uid: string) => boolean, now: () => number) {
    this.#pods = pods;
    this.#isStopped = isStopped;
    this.#now = now;
  }

  /** All pods as a plugin may name them: only the UID and the name. */
  get named() {
    return [...this.all.values()].map(({ uid, name }) => ({ uid, namespace: "", name }));
  }

  /**
   * Looks at all pods. Called before and after each write, so that what a write ends is its doing.
   * @param ours UID of the pod that an eviction of the agent has just ended, if it did
   */
  look(ours?: string): void {
    const present = new Set<string>();
    for (const { metadata, spec, status } of this.#pods()) {
      // It waits to be bound, and is none of the node.
      if (!(spec as { nodeName?: string }).nodeName) continue;
      const { uid = "", name = "", deletionTimestamp } = metadata;
      present.add(uid);
      const { phase } = (status ?? {}) as { phase?: string };
      const truth = this.#of(uid, name);
      const isDeleted = deletionTimestamp !== undefined;
      const isFinished = phase === "Failed" || phase === "Succeeded";
      // The kubelet ends a pod whose containers it does not restart.
      if (isDeleted || isFinished) this.#end(truth, !isDeleted && this.#isStopped(uid) ? uid : ours);
    }
    for (const truth of this.all.values()) {
      if (present.has(truth.uid) || truth.goneAt !== undefined) continue;
      this.#end(truth, ours);
      truth.goneAt = this.#now();
    }
  }

  #of(uid: string, name: string): PodTruth {
    const known = this.all.get(uid);
    if (known) return known;
    const truth = { uid, name, createdAt: this.#now(), endedBy: undefined, endedAt: 0, goneAt: undefined };
    this.all.set(uid, truth);
    return truth;
  }

  #end(truth: PodTruth, ours: string | undefined): void {
    if (truth.endedBy !== undefined) return;
    truth.endedBy = truth.uid === ours ? "ours" : "other";
    truth.endedAt = this.#now();
  }
}

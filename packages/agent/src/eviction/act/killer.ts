import type { EvictionPod, PodReference, QosClass, QosLevel } from "../decide/pods.ts";
import type { BudgetStatus } from "../decide/state.ts";

/** The ways to evict a pod. */
export const killerNames = ["evictionApi", "deletion", "containerStop"] as const;
export type KillerName = (typeof killerNames)[number];

/** Which killer takes which pod: by its QoS level, else by its QoS class, else the default. */
export interface KillerTable {
  default: KillerName;
  byQosLevel: Partial<Record<QosLevel, KillerName>>;
  byQosClass: Partial<Record<QosClass, KillerName>>;
}

export function killerFor(pod: Pick<EvictionPod, "qosLevel" | "qosClass">, table: KillerTable): KillerName {
  return table.byQosLevel[pod.qosLevel] ?? table.byQosClass[pod.qosClass] ?? table.default;
}

/** One try to evict a pod that was just read. */
export interface KillRequest {
  pod: PodReference;
  /** Whole seconds; null is the pod's own, and nothing is sent. */
  gracePeriodSeconds: number | null;
  /** The pod's own, seconds. */
  ownGracePeriodSeconds: number;
  /** Containers to stop, where an earlier try has chosen them; undefined: all that run now. */
  containers?: ReadonlySet<string> | undefined;
}

/** What came of a try. Messages are for people: "POST eviction: 201". */
export type KillResult =
  /** It was accepted. Where `ended` is there, it resolves at the end; else the pod's deletion is the end. */
  { kind: "accepted"; message: string; ended?: Promise<KillEnd>; containers?: ReadonlySet<string> } | KillEnd;

export type KillEnd =
  /** The pod is no more, or its containers are. */
  | { kind: "gone"; message: string }
  /** Trying again does not help now. `isForbidden`: it would be the same for every pod. */
  | { kind: "failed"; message: string; isForbidden?: boolean; isBudget?: boolean; budget?: BudgetStatus }
  /**
   * `maybeSent`: the other side may have done it all the same. `isThrottled`: the server has too much to do, whatever
   * the pod.
   */
  | {
      kind: "retry";
      message: string;
      retryAfterMs: number | undefined;
      maybeSent: boolean;
      isThrottled?: boolean;
    };

/** One way to evict. Throws only what ends the agent: the signal's reason. */
export interface Killer {
  readonly name: KillerName;
  kill(request: KillRequest, signal: AbortSignal): Promise<KillResult>;
}

/** The grace period that holds, seconds. */
export function graceOf({
  gracePeriodSeconds,
  ownGracePeriodSeconds,
}: Pick<KillRequest, "gracePeriodSeconds" | "ownGracePeriodSeconds">): number {
  return gracePeriodSeconds ?? ownGracePeriodSeconds;
}

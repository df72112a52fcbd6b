import type { EvictionPod, PodReference, QosClass, QosLevel } from "./pods.ts";

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
  /** When its eviction was decided, wall milliseconds. */
  since: number;
}

/** What came of a try. Messages are for people: "POST eviction: 201". */
export type KillResult =
  /** It is on its way out. Where `ended` is there, it tells the end; else the pod's going does. */
  { kind: "accepted"; message: string; ended?: Promise<KillEnd> } | KillEnd;

export type KillEnd =
  /** The pod is no more, or its containers are. */
  | { kind: "gone"; message: string }
  /** Trying again does not help now. `isForbidden`: it would be the same for every pod. */
  | { kind: "failed"; message: string; isForbidden?: boolean; isBudget?: boolean }
  /** `maybeSent`: the other side may have done it all the same. */
  | { kind: "retry"; message: string; retryAfterMs: number | undefined; maybeSent: boolean };

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

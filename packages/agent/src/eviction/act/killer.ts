import type { BudgetStatus, EvictionPod, PodReference, QosClass, QosLevel } from "@nodekeeper/api/decide";

/** How pods can be evicted: Eviction API, DELETE, or CRI StopContainer. */
export const killerNames = ["evictionApi", "deletion", "containerStop"] as const;
export type KillerName = (typeof killerNames)[number];

/** Which killer evicts a pod: by QoS level, then by QoS class, then the default. */
export interface KillerTable {
  default: KillerName;
  byQosLevel: Partial<Record<QosLevel, KillerName>>;
  byQosClass: Partial<Record<QosClass, KillerName>>;
}

export function killerFor(pod: Pick<EvictionPod, "qosLevel" | "qosClass">, table: KillerTable): KillerName {
  return table.byQosLevel[pod.qosLevel] ?? table.byQosClass[pod.qosClass] ?? table.default;
}

/** One attempt to evict a pod. */
export interface KillRequest {
  pod: PodReference;
  /** Whole seconds; null to send none, so that the pod's own applies. */
  gracePeriodSeconds: number | null;
  /** The pod's own grace period, seconds. */
  ownGracePeriodSeconds: number;
  /** IDs of the containers to stop, from an earlier attempt; undefined for all running ones. */
  containers?: ReadonlySet<string> | undefined;
}

/** The result of an attempt, with a message for operators such as "POST eviction: accepted". */
export type KillResult =
  /**
   * The eviction was accepted. It ends when the pod is deleted. If `ended` is set, containers are being stopped, and
   * the eviction ends when that promise resolves.
   */
  | { kind: "accepted"; message: string; ended?: Promise<KillEnd>; containers?: ReadonlySet<string> }
  /** The pod or its containers had ended before this attempt. */
  | { kind: "deleted"; seen: string }
  | KillEnd;

export type KillEnd =
  /** The killer stopped the containers and confirmed that they are not running. */
  | { kind: "stopped"; message: string }
  /** Not retryable. `isForbidden`: no pod can be evicted. */
  | { kind: "failed"; message: string; isForbidden?: boolean; isBudget?: boolean; budget?: BudgetStatus }
  /** Retryable. `maybeSent`: the eviction may have been accepted. `isThrottled`: the server limits all requests. */
  | {
      kind: "retry";
      message: string;
      retryAfterMs: number | undefined;
      maybeSent: boolean;
      isThrottled?: boolean;
    };

/** One way to evict pods. Throws only the signal's reason. */
export interface Killer {
  readonly name: KillerName;
  kill(request: KillRequest, signal: AbortSignal): Promise<KillResult>;
}

/** The effective grace period, seconds. */
export function graceOf({
  gracePeriodSeconds,
  ownGracePeriodSeconds,
}: Pick<KillRequest, "gracePeriodSeconds" | "ownGracePeriodSeconds">): number {
  return gracePeriodSeconds ?? ownGracePeriodSeconds;
}

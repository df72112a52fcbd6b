import type { BudgetStatus } from "../decide/outcome.ts";
import type { EvictionPod, PodReference, QosClass, QosLevel } from "../decide/pods.ts";

/** How pods can be evicted: Eviction API, DELETE, or CRI StopContainer. */
export const killerNames = ["evictionApi", "deletion", "containerStop"] as const;
export type KillerName = (typeof killerNames)[number];

/** Which killer evicts which pod: by QoS level, then by QoS class, then the default. */
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
  /** Whole seconds; null for the pod's own, in which case none is sent. */
  gracePeriodSeconds: number | null;
  /** The pod's own, seconds. */
  ownGracePeriodSeconds: number;
  /** IDs of the containers to stop, from an earlier attempt; undefined for all that are running. */
  containers?: ReadonlySet<string> | undefined;
}

/** The result of an attempt, with a message for operators: "POST eviction: accepted". */
export type KillResult =
  /**
   * The eviction was accepted. It ends when the pod is deleted; with `ended`, its containers are being stopped, and it ends
   * when that resolves.
   */
  | { kind: "accepted"; message: string; ended?: Promise<KillEnd>; containers?: ReadonlySet<string> }
  /** The pod, or its containers, had ended before this attempt. */
  | { kind: "deleted"; seen: string }
  | KillEnd;

export type KillEnd =
  /** The killer has stopped the containers, and confirmed that they do not run. */
  | { kind: "stopped"; message: string }
  /** Not retryable now. `isForbidden`: every pod would be refused. */
  | { kind: "failed"; message: string; isForbidden?: boolean; isBudget?: boolean; budget?: BudgetStatus }
  /** Retryable. `maybeSent`: the eviction may have been accepted. `isThrottled`: the server limits all requests. */
  | {
      kind: "retry";
      message: string;
      retryAfterMs: number | undefined;
      maybeSent: boolean;
      isThrottled?: boolean;
    };

/** Evicts pods in one way. Throws only the signal's reason. */
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

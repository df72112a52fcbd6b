import type { BudgetStatus, EvictionPod, PodReference } from "@nodekeeper/api/decide";
import type { EvictionSettings } from "@nodekeeper/api/settings";

/** How pods can be evicted: Eviction API, DELETE, or CRI StopContainer. */
export type KillerName = EvictionSettings["killer"];

/** Returns which killer evicts a pod: by the rule of its QoS level, then of its QoS class, then the default. */
export function killerFor(
  pod: Pick<EvictionPod, "qosLevel" | "qosClass">,
  { killer, killerRules }: Pick<EvictionSettings, "killer" | "killerRules">,
): KillerName {
  const rules = new Map(killerRules.map((rule) => rule.split("=") as [string, KillerName]));
  return rules.get(pod.qosLevel) ?? rules.get(pod.qosClass) ?? killer;
}

/** One attempt to evict a pod. */
export interface KillRequest {
  pod: PodReference;
  /**
   * resourceVersion of the pod as it was read, sent as a precondition (not by `containerStop`). The API server rejects
   * the request if the pod has changed since then: the pod may have become protected. Without the precondition, the API
   * server would also accept the eviction of a pod that another client has deleted.
   */
  resourceVersion?: string | undefined;
  /** Whole seconds; null to send none, so that the pod's own applies. */
  gracePeriodSeconds: number | null;
  /** The pod's own grace period, seconds. */
  ownGracePeriodSeconds: number;
  /** IDs of the containers to stop, from an earlier attempt; undefined for all running ones. */
  containers?: ReadonlySet<string> | undefined;
  /** Called right before the eviction is sent. If it returns false, nothing may be sent, and the result is `unsent`. */
  sending: () => boolean;
}

/** The result of an attempt, with a message for operators such as "POST eviction: accepted". */
export type KillResult =
  /**
   * The eviction was accepted. It ends when the pod is deleted. If `ended` is set, containers are being stopped, and
   * the eviction ends when that promise resolves.
   */
  | { kind: "accepted"; message: string; ended?: Promise<KillEnd>; containers?: ReadonlySet<string> }
  /** The pod had been deleted before this attempt. */
  | { kind: "deleted"; seen: string }
  /** The containers to stop had exited before this attempt. The pod exists, and the kubelet may restart them. */
  | { kind: "exited"; seen: string }
  /** `KillRequest.sending` returned false. */
  | { kind: "unsent" }
  | KillEnd;

export type KillEnd =
  /** The killer stopped the containers and confirmed that they are not running. */
  | { kind: "stopped"; message: string }
  /** Not retryable. `isForbidden`: no pod can be evicted. */
  | { kind: "failed"; message: string; isForbidden?: boolean; isBudget?: boolean; budget?: BudgetStatus }
  /**
   * Retryable. `maybeSent`: the eviction may have been accepted. `isThrottled`: the server limits all requests.
   * `isConflict`: the pod has changed since it was read.
   */
  | {
      kind: "retry";
      message: string;
      retryAfterMs: number | undefined;
      maybeSent: boolean;
      isThrottled?: boolean;
      isConflict?: boolean;
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

import {
  type Condition,
  ConditionType,
  type DeepPartial,
  type GetEvictPodsResponse,
  type GetTopEvictionPodsResponse,
  type ThresholdMetResponse,
  ThresholdMetType,
  ThresholdOperator,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { PodIdentity } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import type { ActivePod } from "./active-pod.ts";

/** Identifies a pod: an ActivePod, or its names as known to a plugin. The agent looks the pod up by its UID. */
export type NamedPod = Pick<ActivePod, "uid" | "namespace" | "name">;

/**
 * A condition of the node. The agent adds a taint for it, and removes the taint some time after the condition was last
 * reported.
 */
export interface EvictionCondition {
  /** The last part of the taint's key: "MemoryPressure". */
  name: string;
  /**
   * "NoSchedule", "PreferNoSchedule", "NoExecute"; for a CustomNodeResource with a QoS level:
   * "reclaimed_cores/NoSchedule". The agent refuses effects that are not in its `eviction.taintEffects`.
   */
  effects: readonly string[];
  /** The object that is tainted. Default: "node". */
  target?: "node" | "customNodeResource";
}

/** State of the resource that a plugin watches. */
export interface ThresholdState {
  /**
   * `hard`: the pod that `getTopEvictionPods` returns is evicted, within the round's burst and the limits. `soft`: at
   * most one pod per round is evicted, after those of hard thresholds: the lowest-ranked of all pods that plugins
   * returned for soft eviction. A pod annotated `katalyst.kubewharf.io/pod_soft_evict_notify: "true"` is notified
   * instead. A plugin that only reports a condition omits `getTopEvictionPods`.
   */
  metType: "none" | "soft" | "hard";
  /**
   * The resource under pressure: "memory", "numa-0". A scope that was not reported before starts its own grace period.
   * Default: empty.
   */
  scope?: string;
  /** Shown to operators next to the threshold. */
  observedValue?: number;
  thresholdValue?: number;
  /** Unit of both values: "bytes" (shown as 1.5Gi), "%", or any other. Default: none. */
  unit?: string;
  /** How the observed value compares with the threshold if the threshold is met. Default: "greaterThan". */
  operator?: "greaterThan" | "lessThan";
  /**
   * How long the threshold must be met before a pod is evicted, whole seconds. The condition is not delayed. Default:
   * 0.
   */
  gracePeriodSeconds?: number;
  /** The node's condition while the threshold is met. */
  condition?: EvictionCondition;
  /** If not empty, only these pods are passed to `getTopEvictionPods`. */
  candidates?: readonly NamedPod[];
}

/** Pods to evict because a threshold is met. */
export interface TopPods {
  /** In the order of eviction. */
  pods: readonly NamedPod[];
  /** Whole seconds. Default: from each pod's spec. */
  gracePeriodSeconds?: number;
}

/** A pod to evict regardless of thresholds. */
export interface PodToEvict {
  pod: NamedPod;
  /** Shown to operators; truncated to 1,024 characters. */
  reason: string;
  /** Whether the eviction is hard. Default: soft, as for `metType`. */
  force?: boolean;
  /** Whole seconds. Default: from the pod's spec. */
  gracePeriodSeconds?: number;
}

/** Pods to evict regardless of thresholds, and a condition of the node. */
export interface PodsToEvict {
  pods: readonly PodToEvict[];
  condition?: EvictionCondition;
}

const metTypes = {
  none: ThresholdMetType.NOT_MET,
  soft: ThresholdMetType.SOFT_MET,
  hard: ThresholdMetType.HARD_MET,
};

/** Throws a TypeError if the protocol can't express a value, as the functions below do. */
export function thresholdMessage(state: ThresholdState | undefined): DeepPartial<ThresholdMetResponse> {
  if (state === undefined) return {};
  const metType = metTypes[state.metType];
  if (metType === undefined) throw new TypeError(`metType must be none, soft or hard; got ${state.metType}`);
  return {
    metType,
    evictionScope: state.scope ?? "",
    observedValue: state.observedValue ?? 0,
    thresholdValue: state.thresholdValue ?? 0,
    unit: state.unit ?? "",
    thresholdOperator:
      state.operator === "lessThan" ? ThresholdOperator.LESS_THAN : ThresholdOperator.GREATER_THAN,
    gracePeriodSeconds: wholeSeconds(state.gracePeriodSeconds ?? 0),
    condition: conditionMessage(state.condition),
    candidatePods: (state.candidates ?? []).map(identityOf),
  };
}

/** Limits the answer to the first `topN` pods; 0 means no limit. */
export function topMessage(
  answer: TopPods | readonly NamedPod[] | undefined,
  topN: number,
): DeepPartial<GetTopEvictionPodsResponse> {
  if (answer === undefined) return {};
  const { pods, gracePeriodSeconds }: TopPods = "pods" in answer ? answer : { pods: answer };
  return {
    targetPods: (topN > 0 ? pods.slice(0, topN) : pods).map(identityOf),
    deletionOptions: deletionOf(gracePeriodSeconds),
  };
}

export function evictPodsMessage(
  answer: PodsToEvict | readonly PodToEvict[] | undefined,
  plugin: string,
): DeepPartial<GetEvictPodsResponse> {
  if (answer === undefined) return {};
  const { pods, condition }: PodsToEvict = "pods" in answer ? answer : { pods: answer };
  return {
    evictPods: pods.map(({ pod, reason, force, gracePeriodSeconds }) => ({
      pod: identityOf(pod),
      reason,
      forceEvict: force ?? false,
      deletionOptions: deletionOf(gracePeriodSeconds),
      evictionPluginName: plugin,
    })),
    condition: conditionMessage(condition),
  };
}

function conditionMessage(condition: EvictionCondition | undefined): DeepPartial<Condition> | undefined {
  return (
    condition && {
      conditionType:
        condition.target === "customNodeResource"
          ? ConditionType.CNR_CONDITION
          : ConditionType.NODE_CONDITION,
      conditionName: condition.name,
      effects: [...condition.effects],
      metCondition: true,
    }
  );
}

// The agent has the pod and reads only its identity.
function identityOf({ uid, namespace, name }: NamedPod): Uint8Array {
  return PodIdentity.encode({ metadata: { uid, namespace, name } }).finish();
}

function deletionOf(gracePeriodSeconds: number | undefined) {
  return gracePeriodSeconds === undefined
    ? undefined
    : { gracePeriodSeconds: wholeSeconds(gracePeriodSeconds) };
}

function wholeSeconds(seconds: number): bigint {
  if (Number.isSafeInteger(seconds)) return BigInt(seconds);
  throw new TypeError(`gracePeriodSeconds must be a whole number; got ${seconds}`);
}

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

/** A pod by its name: an ActivePod, or what a plugin knows of one. A pod is found by its UID. */
export type NamedPod = Pick<ActivePod, "uid" | "namespace" | "name">;

/** A condition of the node. The agent makes a taint of it that stays for a while after the last time it was named. */
export interface EvictionCondition {
  /** The last part of the taint's key: "MemoryPressure". */
  name: string;
  /**
   * "NoSchedule", "PreferNoSchedule", "NoExecute"; for a CustomNodeResource with a QoS level:
   * "reclaimed_cores/NoSchedule". The agent refuses those that its `eviction.taintEffects` lacks.
   */
  effects: readonly string[];
  /** Which object shows it. Default: "node". */
  target?: "node" | "customNodeResource";
}

/** How it stands with what a plugin watches. */
export interface ThresholdState {
  /**
   * `hard`: the pod that `getTopEvictionPods` names is evicted, as far as the round's burst and the limits allow.
   * `soft`: pods are evicted too, but one a round: the lowest-ranked of all that plugins named for soft eviction, after those of
   * hard thresholds. A pod annotated `katalyst.kubewharf.io/pod_soft_evict_notify: "true"` is notified instead. A plugin
   * that wants to evict no pod answers without `getTopEvictionPods`; its condition is shown all the same.
   */
  metType: "none" | "soft" | "hard";
  /** What is under pressure: "memory", "numa-0". A scope that was not reported before starts its own grace period. Default: empty. */
  scope?: string;
  /** Shown to operators beside the threshold. */
  observedValue?: number;
  thresholdValue?: number;
  /** Of both values: "bytes" (shown as 1.5Gi), "%", any other word. Default: none. */
  unit?: string;
  /** How the observed value compares with the threshold when that is met. Default: "greaterThan". */
  operator?: "greaterThan" | "lessThan";
  /** How long it has to be met before a pod is evicted, whole seconds. The condition does not wait for it. Default: 0. */
  gracePeriodSeconds?: number;
  /** Holds while the threshold is met. */
  condition?: EvictionCondition;
  /** Where there are any, only these pods are offered to `getTopEvictionPods`. */
  candidates?: readonly NamedPod[];
}

/** Pods that should go because a threshold is met. */
export interface TopPods {
  /** The first to go first. */
  pods: readonly NamedPod[];
  /** Whole seconds. Default: each pod's own. */
  gracePeriodSeconds?: number;
}

/** A pod that should go, whatever the threshold. */
export interface PodToEvict {
  pod: NamedPod;
  /** For the people who ask why; at most 1,024 characters are kept. */
  reason: string;
  /** A hard eviction. Default: a soft one, as of `metType`. */
  force?: boolean;
  /** Whole seconds. Default: the pod's own. */
  gracePeriodSeconds?: number;
}

/** Pods that should go, and what is wrong with the node. */
export interface PodsToEvict {
  pods: readonly PodToEvict[];
  condition?: EvictionCondition;
}

const metTypes = {
  none: ThresholdMetType.NOT_MET,
  soft: ThresholdMetType.SOFT_MET,
  hard: ThresholdMetType.HARD_MET,
};

/** Throws a TypeError for what the protocol can't express; so do the others. */
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

/** Of more than `topN` pods the first ones; 0 is no limit. */
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

// The agent has the pod itself; a name is all it reads of an answer.
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

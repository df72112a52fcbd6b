import type {
  ConditionAnswer,
  EvictPodsAnswer,
  MetType,
  PodReference,
  ThresholdAnswer,
  TopAnswer,
} from "@nodekeeper/api/decide";
import { EvictionAnswerRefused } from "@nodekeeper/api/errors";
import {
  type Condition,
  ConditionType,
  type DeletionOptions,
  type GetEvictPodsResponse,
  type GetTopEvictionPodsResponse,
  type ThresholdMetResponse,
  ThresholdMetType,
  ThresholdOperator,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { PodIdentity } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";

// Bounds of texts from plugins. The texts are stored in state, records, Events and logs.
const LONGEST_NAME = 253;
const LONGEST_UNIT = 30;
export const LONGEST_REASON = 1024;
const MAX_EFFECTS = 8;

/** Reads a plugin's GetEvictPods answer. Like the functions below, throws `invalid` if a pod can't be decoded. */
export function readEvictPods(response: GetEvictPodsResponse): EvictPodsAnswer {
  return {
    pods: response.evictPods.map((named) => ({
      pod: readIdentity(named.pod),
      reason: named.reason.slice(0, LONGEST_REASON),
      force: named.forceEvict,
      gracePeriodSeconds: graceOf(named.deletionOptions),
    })),
    condition: readCondition(response.condition),
  };
}

/** Reads a plugin's ThresholdMet answer. */
export function readThreshold(response: ThresholdMetResponse): ThresholdAnswer {
  return {
    metType: metTypeOf(response.metType),
    scope: response.evictionScope.slice(0, LONGEST_NAME),
    thresholdValue: finite(response.thresholdValue),
    observedValue: finite(response.observedValue),
    operator: response.thresholdOperator === ThresholdOperator.LESS_THAN ? "lessThan" : "greaterThan",
    ...(response.unit === "" ? {} : { unit: response.unit.slice(0, LONGEST_UNIT) }),
    gracePeriodSeconds: Number(response.gracePeriodSeconds),
    condition: readCondition(response.condition),
    candidateUids: response.candidatePods.map((bytes) => readIdentity(bytes).uid),
  };
}

/** Reads a plugin's GetTopEvictionPods answer. */
export function readTop(response: GetTopEvictionPodsResponse): TopAnswer {
  return {
    pods: response.targetPods.map(readIdentity),
    gracePeriodSeconds: graceOf(response.deletionOptions),
  };
}

function readIdentity(bytes: Uint8Array): PodReference {
  let identity: PodIdentity;
  try {
    identity = PodIdentity.decode(bytes);
  } catch (error) {
    throw new EvictionAnswerRefused({ problem: "a pod in the answer can't be decoded" }, { cause: error });
  }
  const { uid = "", namespace = "", name = "" } = identity.metadata ?? {};
  return {
    uid: uid.slice(0, LONGEST_NAME),
    namespace: namespace.slice(0, LONGEST_NAME),
    name: name.slice(0, LONGEST_NAME),
  };
}

function readCondition(condition: Condition | undefined): ConditionAnswer | null {
  if (condition === undefined) return null;
  return {
    target: condition.conditionType === ConditionType.CNR_CONDITION ? "customNodeResource" : "node",
    name: condition.conditionName.slice(0, LONGEST_NAME),
    effects: condition.effects.slice(0, MAX_EFFECTS).map((effect) => effect.slice(0, LONGEST_NAME)),
    met: condition.metCondition,
  };
}

// An unknown met type counts as not met: no pod is evicted for it.
function metTypeOf(type: ThresholdMetType): MetType {
  if (type === ThresholdMetType.HARD_MET) return "hard";
  return type === ThresholdMetType.SOFT_MET ? "soft" : "none";
}

function graceOf(options: DeletionOptions | undefined): number | null {
  return options === undefined ? null : Number(options.gracePeriodSeconds);
}

function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

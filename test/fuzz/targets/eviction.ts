import {
  ConditionType,
  GetEvictPodsResponse,
  GetTopEvictionPodsResponse,
  ThresholdMetResponse,
  ThresholdMetType,
  ThresholdOperator,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { NodekeeperError } from "@nodekeeper/core/lib";
import fc from "fast-check";
import {
  readEvictPods,
  readThreshold,
  readTop,
} from "../../../packages/agent/src/eviction/ask/read-answers.ts";
import { expectedOnly, type FuzzTarget } from "../fuzz-target.ts";
import { mutated } from "../mutations.ts";

const numbers = fc.oneof(fc.double(), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -0, 1.5));
const condition = fc.record({
  conditionType: fc.constantFrom(ConditionType.NODE_CONDITION, ConditionType.CNR_CONDITION),
  effects: fc.array(
    fc.oneof(fc.constantFrom("NoSchedule", "reclaimed_cores/NoExecute", "NoSchedul"), fc.string()),
  ),
  conditionName: fc.string(),
});
const pod = fc
  .record({ name: fc.string(), namespace: fc.string(), uid: fc.string() })
  .map((metadata) => Pod.encode(Pod.fromPartial({ metadata })).finish());
const grace = fc.record({ gracePeriodSeconds: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) });
const thresholds = fc
  .record({
    metType: fc.constantFrom(ThresholdMetType.NOT_MET, ThresholdMetType.SOFT_MET, ThresholdMetType.HARD_MET),
    thresholdOperator: fc.constantFrom(ThresholdOperator.GREATER_THAN, ThresholdOperator.LESS_THAN),
    thresholdValue: numbers,
    observedValue: numbers,
    evictionScope: fc.string(),
    condition,
  })
  .map((answer) => ThresholdMetResponse.encode(ThresholdMetResponse.fromPartial(answer)).finish());
const tops = fc
  .record({ targetPods: fc.array(pod, { maxLength: 4 }), deletionOptions: grace })
  .map((answer) =>
    GetTopEvictionPodsResponse.encode(GetTopEvictionPodsResponse.fromPartial(answer)).finish(),
  );
const evictions = fc
  .record({
    evictPods: fc.array(
      fc.record({
        pod,
        reason: fc.string(),
        forceEvict: fc.boolean(),
        evictionPluginName: fc.string(),
        deletionOptions: grace,
      }),
      { maxLength: 4 },
    ),
    condition,
  })
  .map((answer) => GetEvictPodsResponse.encode(GetEvictPodsResponse.fromPartial(answer)).finish());

/** For each call, how its answer is decoded, and then read. */
const readers: readonly ((bytes: Uint8Array) => () => unknown)[] = [
  (bytes) => {
    const answer = ThresholdMetResponse.decode(bytes);
    return () => readThreshold(answer);
  },
  (bytes) => {
    const answer = GetTopEvictionPodsResponse.decode(bytes);
    return () => readTop(answer);
  },
  (bytes) => {
    const answer = GetEvictPodsResponse.decode(bytes);
    return () => readEvictPods(answer);
  },
];

/** Answers of eviction plugins. The first byte says to which call. */
export const eviction: FuzzTarget = {
  name: "eviction",
  about: "answers of eviction plugins",
  inputs: fc
    .tuple(fc.nat(2), mutated(fc.oneof(thresholds, tops, evictions)))
    .map(([call, body]) => Buffer.concat([Uint8Array.of(call), body])),
  run([call = 0, ...body]) {
    let read: () => unknown;
    try {
      read = readers[call % readers.length]!(Uint8Array.from(body));
    } catch (error) {
      // The bytes are no message: the call fails.
      return expectedOnly(error, Error);
    }
    try {
      // It is recorded and logged as JSON.
      JSON.stringify(read(), (key, value) => {
        if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${key} is ${value}`);
        return typeof value === "bigint" ? String(value) : value;
      });
    } catch (error) {
      expectedOnly(error, NodekeeperError);
    }
  },
};

import {
  ConditionType,
  GetEvictPodsResponse,
  GetThresholdMetRequest,
  GetTopEvictionPodsResponse,
  ThresholdMetResponse,
  ThresholdMetType,
  ThresholdOperator,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { describe, expect, it } from "vitest";
import { readEvictPods, readThreshold, readTop } from "./read-answers.ts";

const pod = (name: string) =>
  Pod.encode(
    Pod.fromPartial({ metadata: { name, namespace: "n", uid: `uid-${name}`, labels: { a: "b" } } }),
  ).finish();
const reference = (name: string) => ({ uid: `uid-${name}`, namespace: "n", name });

describe("answers of plugins", () => {
  it("of GetEvictPods are read, with no grace period apart from one of 0", () => {
    const response = GetEvictPodsResponse.fromPartial({
      evictPods: [
        { pod: pod("a"), reason: "r", forceEvict: true, deletionOptions: { gracePeriodSeconds: 0 } },
        { pod: pod("b"), evictionPluginName: "another plugin" },
      ],
      condition: { conditionName: "c", metCondition: true, effects: ["NoSchedule"] },
    });
    const onTheWire = GetEvictPodsResponse.decode(GetEvictPodsResponse.encode(response).finish());
    expect(readEvictPods(onTheWire)).toEqual({
      pods: [
        { pod: reference("a"), reason: "r", force: true, gracePeriodSeconds: 0 },
        { pod: reference("b"), reason: "", force: false, gracePeriodSeconds: null },
      ],
      condition: { target: "node", name: "c", effects: ["NoSchedule"], met: true },
    });
  });

  it("of ThresholdMet are read", () => {
    const response = ThresholdMetResponse.fromPartial({
      thresholdValue: 0.8,
      observedValue: Number.NaN,
      thresholdOperator: ThresholdOperator.GREATER_THAN,
      metType: ThresholdMetType.HARD_MET,
      evictionScope: "memory",
      gracePeriodSeconds: -(2n ** 63n),
      condition: { conditionType: ConditionType.CNR_CONDITION, conditionName: "c" },
      candidatePods: [pod("a")],
    });
    expect(readThreshold(response)).toEqual({
      metType: "hard",
      scope: "memory",
      thresholdValue: 0.8,
      observedValue: null,
      operator: "greaterThan",
      gracePeriodSeconds: -(2 ** 63),
      condition: { target: "customNodeResource", name: "c", effects: [], met: false },
      candidateUids: ["uid-a"],
    });
  });

  it("of GetTopEvictionPods are read", () => {
    const response = { targetPods: [pod("a")], deletionOptions: { gracePeriodSeconds: 2n ** 62n } };
    expect(readTop(GetTopEvictionPodsResponse.fromPartial(response))).toEqual({
      pods: [reference("a")],
      gracePeriodSeconds: 2 ** 62,
    });
  });

  it("with a met type of a later protocol count as not met", () => {
    const response = ThresholdMetResponse.decode(Uint8Array.of(0x20, 7));
    expect(readThreshold(response).metType).toBe("none");
  });

  it("are bounded in their texts", () => {
    const long = "x".repeat(100_000);
    const { pods, condition } = readEvictPods(
      GetEvictPodsResponse.fromPartial({
        evictPods: [{ pod: pod(long), reason: long }],
        condition: { conditionName: long, effects: Array.from({ length: 100 }, () => long) },
      }),
    );
    expect(JSON.stringify({ pods, condition }).length).toBeLessThan(5000);
  });

  it("with a pod that can't be decoded are refused; one without any name is for deciding to refuse", () => {
    const broken = { targetPods: [Uint8Array.of(0x0a, 0xff)], deletionOptions: undefined };
    expect(() => readTop(broken)).toThrow(expect.objectContaining({ code: "invalid" }));
    const empty = { targetPods: [new Uint8Array()], deletionOptions: undefined };
    expect(readTop(empty).pods).toEqual([{ uid: "", namespace: "", name: "" }]);
  });
});

it("the pods of a request are on the wire what embedded messages are: tag, length, the pod's bytes", () => {
  const bytes = pod("a");
  const request = GetThresholdMetRequest.encode({ activePods: [bytes, bytes] }).finish();
  const one = [0x0a, bytes.length, ...bytes];
  expect([...request]).toEqual([...one, ...one]);
});

import { describe, expect, test } from "vitest";
import {
  type Device,
  droppedFields,
  type Feature,
  featuresBehindRefusal,
  type SliceSpec,
  withoutFeatures,
} from "./index.ts";
import { driver, nodeName, poolOf } from "./testing.ts";

function sliceOf(...devices: Device[]): SliceSpec {
  return { driver, nodeName, pool: { name: "pool", generation: 1, resourceSliceCount: 1 }, devices };
}

const shared: Device = {
  name: "gpu",
  allowMultipleAllocations: true,
  capacity: { memory: { value: "8Gi", requestPolicy: { default: "1Gi" } } },
};

const cases: { feature: Feature; device: Device; answered: Device; fields: string[] }[] = [
  {
    feature: "DRADeviceTaints",
    device: { name: "gpu", taints: [{ key: "k", effect: "None" }] },
    answered: { name: "gpu" },
    fields: ["taints"],
  },
  {
    feature: "DRAConsumableCapacity",
    device: shared,
    answered: { name: "gpu", capacity: { memory: { value: "8192Mi" } } },
    fields: ["capacity[memory].requestPolicy", "allowMultipleAllocations"],
  },
  {
    feature: "DRADeviceBindingConditions",
    device: { name: "gpu", bindsToNode: true, bindingConditions: ["a"], bindingFailureConditions: ["b"] },
    answered: { name: "gpu" },
    fields: ["bindsToNode", "bindingConditions", "bindingFailureConditions"],
  },
  {
    feature: "DRAListTypeAttributes",
    device: { name: "gpu", attributes: { cores: { ints: [1] }, model: { string: "x" } } },
    answered: { name: "gpu", attributes: { model: { string: "x" } } },
    fields: ["attributes[cores]"],
  },
  {
    feature: "DRANodeAllocatableResources",
    device: { name: "gpu", nodeAllocatableResourceMappings: { cpu: { allocationMultiplier: "2" } } },
    answered: { name: "gpu" },
    fields: ["nodeAllocatableResourceMappings"],
  },
];

describe.each(cases)("$feature", ({ feature, device, answered, fields }) => {
  test("what the server drops is named with its gate", () => {
    expect(droppedFields(sliceOf(device), sliceOf(answered))).toEqual(
      fields.map((field) => ({ device: "gpu", field, feature })),
    );
  });

  test("without it, nothing is dropped", () => {
    const { pools, problems } = withoutFeatures([poolOf([device])], new Set([feature]));
    expect(problems).toEqual([]);
    expect(droppedFields(sliceOf(...pools[0]!.devices), sliceOf(answered))).toEqual([]);
  });
});

test("what no gate explains is named too", () => {
  const device = {
    name: "gpu",
    attributes: { model: { string: "x" } },
    capacity: { memory: { value: "1" } },
  };
  expect(
    droppedFields(sliceOf(device), sliceOf({ ...device, attributes: { model: { string: "y" } } })),
  ).toEqual([{ device: "gpu", field: "attributes[model]" }]);
  expect(droppedFields(sliceOf(device), sliceOf())).toEqual([{ device: "gpu", field: "name" }]);
});

test("a device that would be given out wrongly is held back", () => {
  const bad: Device = { name: "bad", taints: [{ key: "k", effect: "NoSchedule" }] };
  const part: Device = {
    name: "part",
    consumesCounters: [{ counterSet: "a", counters: { b: { value: "1" } } }],
  };
  const without = new Set<Feature>(["DRADeviceTaints", "DRAPartitionableDevices"]);
  const pools = [
    poolOf([bad, part, "good"]),
    { ...poolOf(["x"], "roaming"), nodes: { kind: "perDevice" as const } },
  ];
  const answer = withoutFeatures(pools, without);
  expect(answer.pools).toEqual([poolOf(["good"])]);
  expect(answer.problems.map(({ device, field }) => [device, field])).toEqual([
    ["bad", "taints"],
    ["part", "consumesCounters"],
    [undefined, "perDeviceNodeSelection"],
  ]);
});

test("a refusal may be about a part that was dropped before the check", () => {
  const lists = { name: "gpu", attributes: { cores: { ints: [1] } } };
  expect(featuresBehindRefusal(sliceOf({ name: "gpu" }))).toEqual([]);
  expect(featuresBehindRefusal(sliceOf(lists))).toEqual(["DRAListTypeAttributes"]);
  const roaming = { ...sliceOf({ name: "gpu", allNodes: true }), perDeviceNodeSelection: true };
  expect(featuresBehindRefusal(roaming)).toEqual(["DRAPartitionableDevices"]);
});

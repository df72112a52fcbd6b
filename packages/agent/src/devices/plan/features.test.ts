import { describe, expect, test } from "vitest";
import {
  checkPools,
  type Device,
  droppedFields,
  type Feature,
  featuresIn,
  type SliceSpec,
  withoutFeatures,
} from "../index.ts";
import { driver, nodeName, poolOf } from "../testing/slice-store.ts";

function sliceOf(...devices: Device[]): SliceSpec {
  return { driver, nodeName, pool: { name: "pool", generation: 1, resourceSliceCount: 1 }, devices };
}

const shared: Device = {
  name: "gpu",
  allowMultipleAllocations: true,
  capacity: { memory: { value: "8Gi", requestPolicy: { default: "1Gi" } } },
};

interface Case {
  feature: Feature;
  device: Device;
  answered: Device;
  fields: string[];
  /** The field without which the device would be allocated on other terms. */
  unsafe?: string;
}

const cases: Case[] = [
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
    unsafe: "allowMultipleAllocations",
  },
  {
    feature: "DRADeviceBindingConditions",
    device: { name: "gpu", bindsToNode: true, bindingConditions: ["a"], bindingFailureConditions: ["b"] },
    answered: { name: "gpu" },
    fields: ["bindsToNode", "bindingConditions", "bindingFailureConditions"],
    unsafe: "bindingConditions",
  },
  {
    feature: "DRADeviceBindingConditions",
    device: { name: "gpu", bindsToNode: true },
    answered: { name: "gpu" },
    fields: ["bindsToNode"],
  },
  {
    feature: "DRAListTypeAttributes",
    device: { name: "gpu", attributes: { cores: { ints: [1] }, model: { string: "x" } } },
    answered: { name: "gpu", attributes: { model: { string: "x" } } },
    fields: ["attributes[cores]"],
  },
  {
    feature: "DRANodeAllocatableResources",
    device: { name: "gpu", nodeAllocatableResources: { cpu: { mapping: { deviceMultiplier: "2" } } } },
    answered: { name: "gpu" },
    fields: ["nodeAllocatableResources"],
    unsafe: "nodeAllocatableResources",
  },
];

describe.each(cases)("$feature", ({ feature, device, answered, fields, unsafe }) => {
  test("what the server drops is named with its gate", () => {
    expect(droppedFields(sliceOf(device), sliceOf(answered))).toEqual(
      fields.map((field) => ({ device: "gpu", field, feature })),
    );
  });

  test("without it, the device is published with the drop named, or not at all", () => {
    const checked = checkPools(driver, [poolOf([device])]);
    expect(featuresIn(checked)).toEqual([feature]);
    const { pools, problems, dropped } = withoutFeatures(checked, new Set([feature]));
    const named = [...problems, ...dropped].map(({ field }) => field);
    expect(named.toSorted()).toEqual(fields.toSorted());
    const devices = pools[0]!.devices.map((kept) => kept.device);
    expect(devices).toHaveLength(unsafe ? 0 : 1);
    expect(problems.map(({ field }) => field)).toEqual(unsafe ? [unsafe] : []);
    if (!unsafe) expect(droppedFields(sliceOf(...devices), sliceOf(answered))).toEqual([]);
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

const memory = { name: "a", counters: { b: { value: "8" } } };
const consumer = (name: string, more = {}): Device => ({
  name,
  consumesCounters: [{ counterSet: "a", counters: { b: { value: "1" } }, ...more }],
});

test.each<[string, Feature, Device, string]>([
  ["tainted", "DRADeviceTaints", { name: "bad", taints: [{ key: "k", effect: "NoSchedule" }] }, "taints"],
  ["a part", "DRAPartitionableDevices", consumer("bad"), "consumesCounters"],
  [
    "of a group",
    "DRADeviceCompatibilityGroups",
    consumer("bad", { compatibilityGroups: ["x"] }),
    "consumesCounters.compatibilityGroups",
  ],
])("a device that is %s is quarantined where the server drops that, or may", (_, feature, bad, field) => {
  const checked = checkPools(driver, [{ ...poolOf([bad, "good"]), sharedCounters: [memory] }]);
  const features = new Set([feature]);
  for (const answer of [withoutFeatures(checked, features), withoutFeatures(checked, new Set(), features)]) {
    expect(answer.pools[0]!.devices.map(({ device }) => device.name)).toEqual(["good"]);
    expect(answer.problems).toMatchObject([{ device: "bad", field }]);
    expect(answer.quarantined).toBe(1);
  }
});

test("bindsToNode of a device that other nodes can use is not left out: the allocation would name no node", () => {
  const device = { name: "gpu", bindsToNode: true };
  const pool = { ...poolOf([device]), fields: { allNodes: true } };
  const checked = checkPools(driver, [pool]);
  const features = new Set<Feature>(["DRADeviceBindingConditions"]);
  for (const answer of [withoutFeatures(checked, features), withoutFeatures(checked, new Set(), features)]) {
    expect(answer.pools[0]!.devices).toEqual([]);
    expect(answer.problems).toMatchObject([{ device: "gpu", field: "bindsToNode" }]);
    expect(answer.quarantined).toBe(1);
  }
});

test("what holds for a whole slice is named too, and left out", () => {
  const fields = { partitionTypeAttribute: `${driver}/model`, skipNodeOperations: ["*"] };
  const spec = { ...sliceOf(), ...fields };
  expect(droppedFields(spec, sliceOf())).toEqual([
    { field: "partitionTypeAttribute", feature: "DRAPartitionableDevicesType" },
    { field: "skipNodeOperations", feature: "DRAOptionalNodeOperations" },
  ]);
  const checked = checkPools(driver, [{ ...poolOf(["gpu"]), fields }]);
  const answer = withoutFeatures(checked, new Set<Feature>(["DRAOptionalNodeOperations"]));
  expect(answer.pools[0]!.fields).toEqual({ partitionTypeAttribute: `${driver}/model` });
  expect(answer.dropped).toEqual([
    { pool: nodeName, field: "skipNodeOperations", feature: "DRAOptionalNodeOperations" },
  ]);
});

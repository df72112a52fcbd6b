import * as old from "@nodekeeper/core/gen/dra/v1alpha3/api.ts";
import * as wire from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import { describe, expect, test } from "vitest";
import {
  checkPools,
  decodeNamedResources,
  PoolReader,
  poolsOfNamedResources,
  readMessage,
} from "../index.ts";

const driver = "gpu.example.com";

function read(
  pools: NonNullable<Parameters<typeof wire.ListAndWatchDevicesResponse.fromPartial>[0]["pools"]>,
) {
  const message = wire.ListAndWatchDevicesResponse.fromPartial({ pools });
  const bytes = wire.ListAndWatchDevicesResponse.encode(message).finish();
  return new PoolReader({ driver, nodeName: "worker-1" }).read(readMessage(bytes));
}

/** Fields of a device that have the same form in a message and in a ResourceSlice. */
const unconverted = {
  capacity: {
    memory: {
      value: "8Gi",
      requestPolicy: { default: "1Gi", validRange: { min: "1Gi", step: "1Gi" } },
    },
  },
  allowMultipleAllocations: true,
  bindsToNode: true,
  bindingConditions: ["ready"],
  bindingFailureConditions: ["broken"],
  nodeAllocatableResources: {
    cpu: { mapping: { deviceMultiplier: "2" } },
    memory: { overhead: { perPod: "1Gi" } },
  },
};

describe("a message of the devices protocol", () => {
  test("everything that a driver can report arrives", () => {
    const { pools, problems } = read([
      {
        name: "shared",
        sharedCounters: [{ name: "memory", counters: { left: "8Gi" } }],
        partitionTypeAttribute: "gpu.example.com/model",
        skipNodeOperations: ["*"],
        devices: [
          {
            name: "gpu",
            attributes: {
              index: { int: 0n },
              serial: { int: 9_007_199_254_740_993n },
              healthy: { bool: false },
              model: { string: "" },
              firmware: { version: "1.2.3" },
              cores: { ints: { values: [1n, 2n] } },
              links: { strings: { values: ["a", "b"] } },
            },
            taints: [{ key: "a", effect: "NoExecute", timeAdded: 1_700_000_000_999n }],
            consumesCounters: [
              { counterSet: "memory", counters: { left: "1Gi" }, compatibilityGroups: ["whole"] },
            ],
            ...unconverted,
          },
        ],
      },
      { devices: [{ name: "nic" }] },
    ]);
    expect(problems).toEqual([]);
    expect(pools.map(({ name, fields }) => [name, fields])).toEqual([
      ["shared", { partitionTypeAttribute: "gpu.example.com/model", skipNodeOperations: ["*"] }],
      ["worker-1", {}],
    ]);
    expect(pools[0]!.counterSets.map(({ set }) => set)).toEqual([
      { name: "memory", counters: { left: { value: "8Gi" } } },
    ]);
    expect(pools.flatMap(({ devices }) => devices.map(({ device }) => device))).toEqual([
      {
        name: "gpu",
        attributes: {
          index: { int: 0 },
          serial: { int: 9_007_199_254_740_993n },
          healthy: { bool: false },
          model: { string: "" },
          firmware: { version: "1.2.3" },
          cores: { ints: [1, 2] },
          links: { strings: ["a", "b"] },
        },
        taints: [{ key: "a", effect: "NoExecute", timeAdded: "2023-11-14T22:13:20Z" }],
        consumesCounters: [
          { counterSet: "memory", counters: { left: { value: "1Gi" } }, compatibilityGroups: ["whole"] },
        ],
        ...unconverted,
      },
      { name: "nic" },
    ]);
  });

  test("a key of __proto__ is a key like others", () => {
    // { int: 1 } under the key.
    const entry = Buffer.from([...field(1, Buffer.from("__proto__")), ...field(2, Buffer.from([2 << 3, 1]))]);
    const device = Buffer.from([...field(1, Buffer.from("gpu")), ...field(2, entry)]);
    const message = Buffer.from(field(1, Buffer.from(field(2, device))));
    const reader = new PoolReader({ driver, nodeName: "worker-1" });
    const { pools, problems } = reader.read(readMessage(message));
    expect(problems).toEqual([]);
    expect(Object.keys(pools[0]!.devices[0]!.device.attributes!)).toEqual(["__proto__"]);
  });

  test.each<[string, Partial<wire.Pool>]>([
    ["all nodes", { allNodes: true }],
    ["a node selector", { nodeSelector: { terms: [] } }],
    ["nodes of each device", { perDeviceNodes: true }],
  ])("a pool of %s is refused, the others are published", (_, nodes) => {
    const answer = read([{ name: "a", devices: [{ name: "gpu" }], ...nodes }, { name: "b" }]);
    expect(answer.pools.map(({ name }) => name)).toEqual(["b"]);
    expect(answer.problems).toMatchObject([
      { pool: "a", field: "nodes", message: /clusterPools.drivers does not name/ },
    ]);
    expect(answer.quarantined).toBe(1);
  });

  test("a device that names its nodes is quarantined", () => {
    const devices = [
      { name: "gpu", nodeName: "worker-2" },
      { name: "all", allNodes: true },
      { name: "good" },
    ];
    const answer = read([{ devices }]);
    expect(answer.pools[0]!.devices.map(({ device }) => device.name)).toEqual(["good"]);
    expect(answer.problems.map(({ device, field }) => [device, field])).toEqual([
      ["gpu", "nodes"],
      ["all", "nodes"],
    ]);
  });

  test("fields of a newer contract are reported, and the rest is published", () => {
    // 15 = 1 in the device, 17 = "x" in its capacity, 9 = 1 in the pool, 30 = 1 in the message.
    const capacity = Buffer.from([...field(1, Buffer.from("8")), ...field(17, Buffer.from("x"))]);
    const entry = Buffer.from([...field(1, Buffer.from("memory")), ...field(2, capacity)]);
    const device = Buffer.from([...field(1, Buffer.from("gpu")), ...field(3, entry), 15 << 3, 1]);
    const pool = Buffer.from([...field(2, device), 9 << 3, 1]);
    const message = Buffer.from([...field(1, pool), 0xf0, 0x01, 1]);
    const answer = new PoolReader({ driver, nodeName: "worker-1" }).read(readMessage(message));
    expect(answer.pools[0]!.devices.map(({ device: { name, capacity } }) => [name, capacity])).toEqual([
      ["gpu", { memory: { value: "8" } }],
    ]);
    expect(answer.quarantined).toBe(0);
    expect(answer.problems.map(({ device, field }) => [device, field])).toEqual([
      [undefined, "30"],
      [undefined, "9"],
      ["gpu", "capacity.17"],
      ["gpu", "15"],
    ]);
  });
});

function field(number: number, bytes: Uint8Array): number[] {
  const tag = (number << 3) | 2;
  return [...(tag > 127 ? [(tag & 127) | 128, tag >> 7] : [tag]), bytes.length, ...bytes];
}

function messageOf(...instances: Parameters<typeof old.NamedResourcesInstance.fromPartial>[0][]) {
  const message = { resources: [{ namedResources: { instances } }] };
  return old.NodeListAndWatchResourcesResponse.decode(
    old.NodeListAndWatchResourcesResponse.encode(
      old.NodeListAndWatchResourcesResponse.fromPartial(message),
    ).finish(),
  );
}

describe("the old model", () => {
  const message = messageOf({
    name: "gpu.0",
    attributes: [
      { name: "model", attributeValue: { string: "x" } },
      { name: "driver-version", attributeValue: { version: "1.2.3" } },
      { name: "index", attributeValue: { int: -1n } },
      { name: "healthy", attributeValue: { bool: false } },
      { name: "memory", attributeValue: { quantity: { string: "8Gi" } } },
      { name: "cores", attributeValue: { intSlice: { ints: [1n, 2n] } } },
      { name: "links", attributeValue: { stringSlice: { strings: ["a", "b"] } } },
    ],
  });

  test("as it is, for an API server of 1.30", () => {
    expect(decodeNamedResources(message)).toEqual([
      {
        instances: [
          {
            name: "gpu.0",
            attributes: [
              { name: "model", string: "x" },
              { name: "driver-version", version: "1.2.3" },
              { name: "index", int: -1 },
              { name: "healthy", bool: false },
              { name: "memory", quantity: "8Gi" },
              { name: "cores", intSlice: { ints: [1, 2] } },
              { name: "links", stringSlice: { strings: ["a", "b"] } },
            ],
          },
        ],
      },
    ]);
  });

  test("in the words of resource.k8s.io/v1", () => {
    const { pools, problems } = poolsOfNamedResources(decodeNamedResources(message), "worker-1");
    expect(problems).toEqual([]);
    const device = pools[0]!.devices[0]!;
    expect(device.name).toMatch(/^gpu-0-h/);
    expect(Object.keys(device.attributes!)[1]).toMatch(/^driver_version_h/);
    expect(device.attributes).toMatchObject({
      model: { string: "x" },
      index: { int: -1 },
      healthy: { bool: false },
      cores: { ints: [1, 2] },
      links: { strings: ["a", "b"] },
    });
    expect(device.capacity).toEqual({ memory: { value: "8Gi" } });
    expect(checkPools(driver, pools).problems).toEqual([]);
  });

  test("lists of integers are read unpacked and packed", () => {
    const unpacked = Buffer.from([0x08, 1, 0x08, 2]);
    const packed = Buffer.from([0x0a, 2, 1, 2]);
    for (const bytes of [unpacked, packed])
      expect(old.NamedResourcesIntSlice.decode(bytes).ints).toEqual([1n, 2n]);
  });

  test("an attribute with no value, two, or its name twice costs its instance alone", () => {
    const models = decodeNamedResources(
      messageOf(
        { name: "none", attributes: [{ name: "a" }] },
        { name: "two", attributes: [{ name: "a", attributeValue: { bool: true, string: "x" } }] },
        {
          name: "mixed",
          attributes: [{ name: "a", attributeValue: { bool: true, quantity: { string: "1" } } }],
        },
        {
          name: "twice",
          attributes: ["x", "y"].map((string) => ({ name: "a", attributeValue: { string } })),
        },
        { name: "good" },
      ),
    );
    const { pools, problems } = poolsOfNamedResources(models, "worker-1");
    const checked = checkPools(driver, pools);
    expect(checked.pools[0]!.devices.map(({ device }) => device.name)).toEqual(["good"]);
    expect([...problems, ...checked.problems].map(({ device }) => device)).toEqual([
      "mixed",
      "twice",
      "none",
      "two",
    ]);
  });

  test("nothing at all is no pool, and a model of an unknown kind is an empty one", () => {
    expect(poolsOfNamedResources([], "worker-1").pools).toEqual([]);
    const unknown = decodeNamedResources(
      old.NodeListAndWatchResourcesResponse.fromPartial({ resources: [{}] }),
    );
    expect(unknown).toEqual([{ instances: [] }]);
    expect(poolsOfNamedResources(unknown, "worker-1").pools).toMatchObject([{ devices: [] }]);
  });
});

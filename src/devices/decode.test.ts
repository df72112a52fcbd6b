import { describe, expect, test } from "vitest";
import * as old from "../gen/dra/v1alpha3/api.ts";
import * as wire from "../gen/nodekeeper/devices/v1alpha1/api.ts";
import { checkPools, decodeNamedResources, decodePools, poolsOfNamedResources } from "./index.ts";

describe("decodePools", () => {
  test("everything that a driver can say arrives", () => {
    const message = wire.ListAndWatchDevicesResponse.decode(
      wire.ListAndWatchDevicesResponse.encode(
        wire.ListAndWatchDevicesResponse.fromPartial({
          pools: [
            {
              name: "shared",
              nodeSelector: {
                terms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] }],
              },
              sharedCounters: [{ name: "memory", counters: { left: "8Gi" } }],
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
                    ["__proto__"]: { string: "not polluted" },
                  },
                  capacity: {
                    memory: {
                      value: "8Gi",
                      requestPolicy: { default: "1Gi", validRange: { min: "1Gi", step: "1Gi" } },
                    },
                  },
                  taints: [{ key: "a", effect: "NoExecute", timeAdded: 1_700_000_000_999n }],
                  consumesCounters: [{ counterSet: "memory", counters: { left: "1Gi" } }],
                  allowMultipleAllocations: true,
                  bindsToNode: true,
                  bindingConditions: ["ready"],
                  bindingFailureConditions: ["broken"],
                  nodeAllocatableMappings: { cpu: { allocationMultiplier: "2" } },
                },
              ],
            },
            { devices: [{ name: "nic" }] },
          ],
        }),
      ).finish(),
    );
    const { pools, problems } = decodePools(message, "worker-1");
    expect(problems).toEqual([]);
    expect(pools).toEqual([
      {
        name: "shared",
        nodes: {
          kind: "selector",
          selector: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] }],
          },
        },
        sharedCounters: [{ name: "memory", counters: { left: { value: "8Gi" } } }],
        devices: [
          {
            name: "gpu",
            attributes: expect.objectContaining({
              index: { int: 0 },
              serial: { int: 9_007_199_254_740_993n },
              healthy: { bool: false },
              model: { string: "" },
              firmware: { version: "1.2.3" },
              cores: { ints: [1, 2] },
            }),
            capacity: {
              memory: {
                value: "8Gi",
                requestPolicy: { default: "1Gi", validRange: { min: "1Gi", step: "1Gi" } },
              },
            },
            taints: [{ key: "a", effect: "NoExecute", timeAdded: "2023-11-14T22:13:20Z" }],
            consumesCounters: [{ counterSet: "memory", counters: { left: { value: "1Gi" } } }],
            allowMultipleAllocations: true,
            bindsToNode: true,
            bindingConditions: ["ready"],
            bindingFailureConditions: ["broken"],
            nodeAllocatableResourceMappings: { cpu: { allocationMultiplier: "2" } },
          },
        ],
      },
      { name: "worker-1", nodes: { kind: "thisNode" }, sharedCounters: [], devices: [{ name: "nic" }] },
    ]);
    expect(checkPools(pools).problems).toEqual([]);
  });

  test("a pool with two choices of nodes is refused, the others go on", () => {
    const pools = [
      { name: "a", allNodes: true, perDeviceNodes: true },
      { name: "b", allNodes: true },
    ];
    const answer = decodePools(wire.ListAndWatchDevicesResponse.fromPartial({ pools }), "worker-1");
    expect(answer.pools.map(({ name, nodes }) => [name, nodes.kind])).toEqual([["b", "allNodes"]]);
    expect(answer.problems).toMatchObject([{ pool: "a", field: "nodes" }]);
  });
});

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
    expect(checkPools(pools).problems).toEqual([]);
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
    const checked = checkPools(pools);
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

import type { KubeObject } from "@nodekeeper/core/kube";
import { parseWithBigInts } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decodeSpec,
  droppedFields,
  encodeSlice,
  type SliceSpec,
  sliceVersions,
  storedSlice,
} from "../index.ts";
import { anyDevice, checked, driver, nodeName, poolOf, SliceStore } from "../testing/slice-store.ts";

const spec: fc.Arbitrary<SliceSpec> = fc.tuple(anyDevice("gpu-0"), anyDevice("gpu-1")).map((devices) => ({
  driver,
  nodeName,
  pool: { name: "pool", generation: 3, resourceSliceCount: 1 },
  devices,
}));

/** Through JSON and back, as through the API server. */
function answered(object: object) {
  return parseWithBigInts(JSON.stringify(object)) as KubeObject;
}

describe.each(sliceVersions)("%s", (version) => {
  test("what is sent is what is read", () => {
    fc.assert(
      fc.property(spec, (desired) => {
        const object = answered(encodeSlice(version, { name: "x" }, desired));
        const read = decodeSpec(version, object);
        expect(droppedFields(desired, read)).toEqual([]);
        expect(read.pool).toEqual(desired.pool);
        expect(answered(encodeSlice(version, { name: "x" }, read))).toEqual(object);
      }),
    );
  });

  test("a plan against what was stored is empty", () => {
    fc.assert(
      fc.property(anyDevice("gpu-0"), (device) => {
        const store = new SliceStore(version);
        const memory = { name: "memory", counters: { left: { value: "2Gi" } } };
        const pools = checked({ ...poolOf([device]), sharedCounters: [memory] });
        store.sync(pools);
        expect(store.plan(pools)).toEqual({ deletes: [], updates: [], creates: [] });
      }),
    );
  });
});

const device = {
  name: "gpu",
  attributes: { model: { string: "x" } },
  capacity: { memory: { value: "1Gi" } },
};
const sliceOfGpu: SliceSpec = {
  driver,
  nodeName,
  pool: { name: "pool", generation: 1, resourceSliceCount: 1 },
  devices: [device],
};

test("v1beta1 keeps what is in a device under `basic`", () => {
  const object = answered(encodeSlice("v1beta1", { name: "x" }, sliceOfGpu));
  expect(object).toEqual({
    apiVersion: "resource.k8s.io/v1beta1",
    kind: "ResourceSlice",
    metadata: { name: "x" },
    spec: {
      ...sliceOfGpu,
      devices: [{ name: "gpu", basic: { attributes: device.attributes, capacity: device.capacity } }],
    },
  });
});

test("integers go digit for digit", () => {
  const int = 2n ** 62n + 1n;
  const big = {
    ...sliceOfGpu,
    devices: [{ name: "gpu", attributes: { serial: { int }, all: { ints: [int, 7] } } }],
  };
  const text = JSON.stringify(encodeSlice("v1", { name: "x" }, big));
  expect(text).toContain('"serial":{"int":4611686018427387905}');
  expect(text).toContain('"ints":[4611686018427387905,7]');
});

test("what the server sets by default is no difference", () => {
  const mappings = { cpu: { capacityKey: "memory" } };
  const sent = { ...sliceOfGpu, devices: [{ ...device, nodeAllocatableResourceMappings: mappings }] };
  const full = { cpu: { capacityKey: "memory", allocationMultiplier: "1" } };
  const stored = { ...sliceOfGpu, devices: [{ ...device, nodeAllocatableResourceMappings: full }] };
  expect(droppedFields(sent, stored)).toEqual([]);
});

test("an object that makes no sense is read as an empty slice", () => {
  for (const spec of [undefined, null, 7, {}, { pool: null }]) {
    const slice = storedSlice("v1", { metadata: { name: "x" }, spec });
    expect(slice).toMatchObject({ name: "x", driver: "", devices: [], pool: { name: "", generation: 0 } });
  }
});

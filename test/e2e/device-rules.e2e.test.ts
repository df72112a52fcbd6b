import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  checkPools,
  type Device,
  type DevicePool,
  decodeSpec,
  droppedFields,
  encodeModel,
  encodeSlice,
  featuresBehindRefusal,
  modelsOfPools,
  planModels,
  planSlices,
  type SliceSpec,
  sliceVersions,
  storedModel,
  storedSlice,
} from "../../src/devices/index.ts";
import { bad, good, memory } from "../../src/devices/rule-cases.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { missingParts } from "./support/parts.ts";

const driver = "gpu.example.com";
const nodeName = "worker-1";

// What the agent refuses and the API server does not: names that its documentation rules out, references that only the
// scheduler checks, and a division by zero that takes the whole request with it.
const stricter = ["two slashes", "an unknown counter set", "an unknown counter", "a step of zero"];

function pathOf(version: string): string {
  return `/apis/resource.k8s.io/${version}/resourceslices`;
}

function specOf(device: Partial<Device>, nodes?: DevicePool["nodes"]): SliceSpec {
  return {
    driver,
    pool: { name: "pool", generation: 1, resourceSliceCount: 1 },
    ...(nodes?.kind === "perDevice" ? { perDeviceNodeSelection: true } : { nodeName }),
    devices: [{ name: "gpu", ...device }],
  };
}

/** Every good device of this node in one pool, and a pool of all nodes that is empty. */
function poolsNamed(prefix: string): DevicePool[] {
  const devices = good
    .filter(([, , nodes]) => !nodes)
    .map(([, device], at) => ({ ...device, name: `gpu-${at}` }));
  return [
    { name: `${prefix}-full`, nodes: { kind: "thisNode" }, devices, sharedCounters: [memory] },
    { name: `${prefix}-empty`, nodes: { kind: "allNodes" }, devices: [], sharedCounters: [] },
  ];
}

describe.skipIf(missingParts("etcd", "openssl", "kubeApiServer"))("rules of slices", () => {
  let cluster: ControlPlane;

  beforeAll(async () => {
    cluster = await startControlPlane({
      flags: [
        "--feature-gates=DRAListTypeAttributes=true,DRANodeAllocatableResources=true",
        "--runtime-config=resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true",
      ],
    });
  });
  afterAll(() => cluster?.stop());

  const tryOut = (version: (typeof sliceVersions)[number], spec: SliceSpec) =>
    cluster.admin.create(`${pathOf(version)}?dryRun=All`, encodeSlice(version, { name: "x" }, spec));

  describe.each(sliceVersions)("%s", (version) => {
    it.each(good)("takes whole: %s", async (_, device, nodes) => {
      const spec = specOf(device, nodes);
      const { metadata, ...answer } = await tryOut(version, spec);
      expect(droppedFields(spec, decodeSpec(version, { metadata, ...answer }))).toEqual([]);
    });

    it.each(bad.filter(([name]) => !stricter.includes(name)))("refuses: %s", async (_, device, __, nodes) => {
      await expect(tryOut(version, specOf(device, nodes))).rejects.toMatchObject({ message: /: 4(00|22) / });
    });

    it("stores a plan so that every version reads it as done", async () => {
      const { pools, problems } = checkPools(poolsNamed(version));
      expect(problems).toEqual([]);
      for (const { name, spec } of planSlices({ driver, nodeName, pools, stored: [] }).creates) {
        await cluster.admin.create(pathOf(version), encodeSlice(version, { name }, spec));
      }
      for (const reader of sliceVersions) {
        const { items } = await cluster.admin.get(pathOf(reader));
        const stored = items
          .map((object: ApiObject) => storedSlice(reader, { metadata: {}, ...object }))
          .filter(({ pool }: { pool: { name: string } }) => pool.name.startsWith(`${version}-`));
        expect(stored).toHaveLength(3);
        expect(planSlices({ driver, nodeName, pools, stored })).toEqual({
          deletes: [],
          updates: [],
          creates: [],
        });
      }
    });
  });
});

describe.skipIf(missingParts("etcd", "openssl", "kubeApiServer"))("with every gate off", () => {
  let cluster: ControlPlane;

  beforeAll(async () => {
    const gates = ["DeviceTaints", "PartitionableDevices", "ConsumableCapacity", "DeviceBindingConditions"];
    const flag = gates.map((gate) => `DRA${gate}=false`).join();
    cluster = await startControlPlane({ flags: [`--feature-gates=${flag}`] });
  });
  afterAll(() => cluster?.stop());

  it.each(good)("what is lost is explained: %s", async (_, device, nodes) => {
    const spec = specOf(device, nodes);
    const object = encodeSlice("v1", { name: "x" }, spec);
    const answer = await cluster.admin.create(`${pathOf("v1")}?dryRun=All`, object).catch(() => undefined);
    if (answer) {
      const dropped = droppedFields(spec, decodeSpec("v1", { metadata: {}, ...answer }));
      expect(dropped.filter(({ feature }) => !feature)).toEqual([]);
    } else {
      expect(featuresBehindRefusal(spec)).not.toEqual([]);
    }
  });
});

describe.skipIf(missingParts("etcd", "openssl", "oldKubeApiServer"))("slices of Kubernetes 1.30", () => {
  let cluster: ControlPlane;

  beforeAll(async () => {
    cluster = await startControlPlane({
      apiServer: "oldKubeApiServer",
      flags: [
        "--feature-gates=DynamicResourceAllocation=true",
        "--runtime-config=resource.k8s.io/v1alpha2=true",
      ],
    });
  });
  afterAll(() => cluster?.stop());

  it("stores models so that they are read as done, alike ones too", async () => {
    const path = pathOf("v1alpha2");
    const named = [
      { name: "big", int: 2n ** 62n + 1n },
      { name: "memory", quantity: "1024Mi" },
      { name: "links", stringSlice: { strings: ["a"] } },
    ];
    const models = [
      ...modelsOfPools(poolsNamed("new")).models,
      { instances: [{ name: "gpu.0", attributes: named }] },
      { instances: [] },
      { instances: [] },
    ];
    for (const { name, model } of planModels({ driver, nodeName, models, stored: [] }).creates) {
      await cluster.admin.create(path, encodeModel({ name }, driver, nodeName, model));
    }
    const { items } = await cluster.admin.get(path);
    expect(items).toHaveLength(4);
    const stored = items.map((object: ApiObject) => storedModel({ metadata: {}, ...object }));
    expect(planModels({ driver, nodeName, models, stored })).toEqual({
      deletes: [],
      updates: [],
      creates: [],
    });
  });
});

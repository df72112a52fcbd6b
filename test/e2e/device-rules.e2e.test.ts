import { join } from "node:path";
import { eventually } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  checkPools,
  type Device,
  type DevicePool,
  decodeSpec,
  droppedFields,
  encodeModel,
  encodeSlice,
  type Feature,
  featuresIn,
  modelsOfPools,
  planModels,
  planSlices,
  type SliceSpec,
  sliceVersions,
  storedModel,
  storedSlice,
  withoutFeatures,
} from "../../packages/agent/src/devices/index.ts";
import { bad, good, memory } from "../../packages/agent/src/devices/testing/rule-cases.ts";
import { wholePlan } from "../../packages/agent/src/devices/testing/slice-store.ts";
import type { ApiObject } from "./support/admin-client.ts";
import { type ControlPlane, startControlPlane } from "./support/control-plane.ts";
import { compactSchemas, type OpenApiDocument, servedSchemas } from "./support/kube-schemas.ts";
import { missingParts } from "./support/parts.ts";

const root = join(import.meta.dirname, "../..");
const definitionFile = join(root, "deploy/crds/customnoderesources.yaml");
const schemasFile = join(root, "packages/testing/src/apiserver/catalogue/kubernetes-schemas.json");
const groupsWithSchemas = [
  "apiextensions.k8s.io/v1",
  "coordination.k8s.io/v1",
  "events.k8s.io/v1",
  "node.katalyst.kubewharf.io/v1alpha1",
  "policy/v1",
  "resource.k8s.io/v1",
  "resource.k8s.io/v1beta1",
  "resource.k8s.io/v1beta2",
];

const driver = "gpu.example.com";
const nodeName = "worker-1";

// What the agent refuses and the API server does not: names that its documentation rules out, references that only the
// scheduler checks, and a division by zero that takes the whole request with it.
const stricter = ["two slashes", "an unknown counter set", "an unknown counter", "a step of zero"];
// What a server before Kubernetes 1.37 drops unread.
const ofNewest = (device: Partial<Device>) =>
  device.nodeAllocatableResources || device.consumesCounters?.some((item) => item.compatibilityGroups);

function pathOf(version: string): string {
  return `/apis/resource.k8s.io/${version}/resourceslices`;
}

function specOf(device: Partial<Device>): SliceSpec {
  return {
    driver,
    pool: { name: "pool", generation: 1, resourceSliceCount: 1 },
    nodeName,
    devices: [{ name: "gpu", ...device }],
  };
}

/** Every good device in one pool, as far as the server keeps it, and a pool that is empty. */
function poolsNamed(prefix: string): DevicePool[] {
  const devices = accepted.map(([, device], at) => ({ ...device, name: `gpu-${at}` }));
  return [
    { name: `${prefix}-full`, devices, sharedCounters: [memory] },
    { name: `${prefix}-empty`, devices: [], sharedCounters: [] },
  ];
}

// Only servers from Kubernetes 1.37 on count steps in fractions; the agent leaves it to them.
const accepted = good.filter(([name]) => name !== "a range in fractions");
// What came with Kubernetes 1.37; servers before it drop it, as they do where its gate is off.
const newest = new Set<Feature>(["DRANodeAllocatableResources", "DRADeviceCompatibilityGroups"]);

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

  // `npx vitest run --config test/e2e/vitest.config.ts device-rules -u` renews the file.
  it("the development API server checks by the schemas of this one", async () => {
    const served = ["api/v1", ...groupsWithSchemas.map((group) => `apis/${group}`)];
    await cluster.kubectl.run("apply", "--server-side", "-f", definitionFile);
    const documents = await eventually(() =>
      Promise.all(served.map((path) => cluster.admin.get(`/openapi/v3/${path}`))),
    );
    const schemas = compactSchemas(documents as never as OpenApiDocument[], servedSchemas);
    await expect(schemas).toMatchFileSnapshot(schemasFile);
  });

  it("stores the node's resources of a device in another field than servers from 1.37 on", async () => {
    const device: Partial<Device> = { capacity: { cpu: { value: "4" } }, allowMultipleAllocations: true };
    const newer = { cpu: { mapping: { capacityKey: "cpu", capacityMultiplier: "1" } } };
    const older = { cpu: { capacityKey: "cpu", allocationMultiplier: "1" } };
    const both = { ...device, nodeAllocatableResources: newer, nodeAllocatableResourceMappings: older };
    const { spec } = await tryOut("v1", specOf(both));
    expect(spec.devices).toEqual([{ name: "gpu", ...device, nodeAllocatableResourceMappings: older }]);
  });

  const tryOut = (version: (typeof sliceVersions)[number], spec: SliceSpec) =>
    cluster.admin.create(`${pathOf(version)}?dryRun=All`, encodeSlice(version, { name: "x" }, spec));

  describe.each(sliceVersions)("%s", (version) => {
    it.each(accepted)("takes whole, but for what is newer: %s", async (_, device) => {
      const spec = specOf(device);
      const { metadata, ...answer } = await tryOut(version, spec);
      const dropped = droppedFields(spec, decodeSpec(version, { metadata, ...answer }));
      expect(dropped.filter(({ feature }) => !feature || !newest.has(feature))).toEqual([]);
    });

    it.each(bad.filter(([name, device]) => !stricter.includes(name) && !ofNewest(device)))(
      "refuses: %s",
      async (_, device) => {
        await expect(tryOut(version, specOf(device))).rejects.toMatchObject({ message: /: 4(00|22) / });
      },
    );

    it("stores a plan so that every version reads it as done", async () => {
      const checked = checkPools(driver, poolsNamed(version));
      expect(checked.problems).toEqual([]);
      const { pools } = withoutFeatures(checked, newest);
      for (const { name, spec } of wholePlan(planSlices({ driver, nodeName, pools, stored: [] })).creates) {
        await cluster.admin.create(pathOf(version), encodeSlice(version, { name }, spec));
      }
      for (const reader of sliceVersions) {
        const { items } = await cluster.admin.get(pathOf(reader));
        const stored = items
          .map((object: ApiObject) => storedSlice(reader, { metadata: {}, ...object }))
          .filter(({ pool }: { pool: { name: string } }) => pool.name.startsWith(`${version}-`));
        expect(stored).toHaveLength(3);
        expect(planSlices({ driver, nodeName, pools, stored })).toEqual([]);
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

  it.each(accepted)("what is lost is explained: %s", async (_, device) => {
    const spec = specOf(device);
    const object = encodeSlice("v1", { name: "x" }, spec);
    const answer = await cluster.admin.create(`${pathOf("v1")}?dryRun=All`, object).catch(() => undefined);
    if (answer) {
      const dropped = droppedFields(spec, decodeSpec("v1", { metadata: {}, ...answer }));
      expect(dropped.filter(({ feature }) => !feature)).toEqual([]);
    } else {
      // A list is dropped, and the attribute without a value refused.
      expect(
        featuresIn(checkPools(driver, [{ name: "pool", devices: spec.devices!, sharedCounters: [] }])),
      ).toContain("DRAListTypeAttributes");
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
    expect(items).toHaveLength(5);
    const stored = items.map((object: ApiObject) => storedModel({ metadata: {}, ...object }));
    expect(planModels({ driver, nodeName, models, stored })).toEqual({
      deletes: [],
      updates: [],
      creates: [],
    });
  });
});

import type { KubeObject } from "@nodekeeper/core/kube";
import { type DevicePool, type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";

const DRIVER = "gpu.example.com";
const SLICES = "resourceslices.resource.k8s.io";

let cluster: TestCluster;
let agent: RunningAgent;
let driver: Plugin | undefined;
// Names of devices in every slice that was written, dry runs left out.
let written: Set<string>;

beforeEach(async () => {
  cluster = await startCluster();
  written = new Set();
  agent = await startAgent(cluster, { devicesKubeletPluginEnabled: "false" });
});

afterEach(async () => {
  await driver?.stop();
  await agent.stop();
  await cluster.stop();
});

type Json = Record<string, unknown>;

/** Has the server drop fields of devices, as one does whose feature gates are off. */
function drop(...fields: string[]): void {
  cluster.admit = ({ method, path, query, body }) => {
    if (method === "GET" || method === "DELETE" || !path.includes("resourceslices")) return undefined;
    const { spec } = body as KubeObject & { spec: { devices?: Json[] } };
    for (const device of spec.devices ?? []) {
      if (!query.has("dryRun")) written.add(String(device.name));
      for (const field of fields) delete device[field];
      if (!fields.includes("requestPolicy")) continue;
      for (const capacity of Object.values((device.capacity ?? {}) as Record<string, Json>))
        delete capacity.requestPolicy;
    }
    return undefined;
  };
}

async function serve(devices: NonNullable<DevicePool["devices"]>): Promise<void> {
  driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: agent.pluginDir,
    async *devices() {
      yield [
        {
          sharedCounters: [{ name: "memory", counters: { left: "8Gi" } }],
          devices: [...devices, { name: "plain" }],
        },
      ];
    },
  });
  await driver.ready;
}

const status = async () => (await agent.api("devices")).find(({ name }: Json) => name === DRIVER);
const events = () =>
  cluster.server.store
    .list("events")
    .map(({ reason, message }) => `${reason}: ${message}`)
    .join("\n");
const published = () =>
  cluster.server.store
    .list(SLICES)
    .flatMap(({ spec }) => (spec as { devices?: Json[] }).devices ?? [])
    .map(({ name }) => name);

const conditions = ["bindsToNode", "bindingConditions", "bindingFailureConditions"];

it.each<[string, string[], NonNullable<DevicePool["devices"]>[number], string, string]>([
  [
    "binding conditions",
    conditions,
    { bindingConditions: ["example.com/ready"], bindingFailureConditions: ["example.com/failed"] },
    "bindingConditions",
    "DRADeviceBindingConditions",
  ],
  [
    "shares of one device",
    ["allowMultipleAllocations", "requestPolicy"],
    {
      allowMultipleAllocations: true,
      capacity: { memory: { value: "8Gi", requestPolicy: { default: "1Gi" } } },
    },
    "allowMultipleAllocations",
    "DRAConsumableCapacity",
  ],
  [
    "use of the node's own resources",
    ["nodeAllocatableResources"],
    { nodeAllocatableResources: { cpu: { mapping: { deviceMultiplier: "2" } } } },
    "nodeAllocatableResources",
    "DRANodeAllocatableResources",
  ],
  [
    "a taint",
    ["taints"],
    { taints: [{ key: "example.com/broken", effect: "NoSchedule" }] },
    "taints",
    "DRADeviceTaints",
  ],
])(
  "a device whose %s the API server drops is at no time published without",
  async (_, fields, device, field, feature) => {
    drop(...fields);
    await serve([{ name: "special", ...device }]);
    await eventually(async () =>
      expect(await status()).toMatchObject({
        devices: 1,
        quarantined: 1,
        problems: [{ pool: NODE, device: "special", field, message: expect.stringContaining(feature) }],
      }),
    );
    expect(published()).toEqual(["plain"]);
    expect(written).toEqual(new Set(["plain"]));
    await until("the Event", () => events().includes("DevicesQuarantined"));
    expect(events()).toContain(`special of pool ${NODE}: ${field}`);
    expect(events()).toContain(feature);
  },
);

it("a drop that changes nothing about allocation is named, and its device published", async () => {
  drop(...conditions);
  await serve([{ name: "bound", bindsToNode: true }]);
  await eventually(() => expect(published()).toEqual(["bound", "plain"]));
  await eventually(async () =>
    expect(await status()).toMatchObject({
      quarantined: 0,
      dropped: [{ pool: NODE, device: "bound", field: "bindsToNode", feature: "DRADeviceBindingConditions" }],
    }),
  );
  await until("the Event", () => events().includes("DeviceFieldsDropped"));
  expect(events()).toContain(`bindsToNode of bound of pool ${NODE}`);
  // Nothing is quarantined, and the agent's own field is no driver's.
  expect(events()).not.toContain("DevicesQuarantined");
  expect(events()).not.toContain("skipNodeOperations");
});

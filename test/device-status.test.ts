import type { KubeObject } from "@nodekeeper/core/kube";
import { LatestValue } from "@nodekeeper/core/lib";
import { type DeviceStatus, type Plugin, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const DRIVER = "nic.example.com";
const CLAIMS = "resourceclaims.resource.k8s.io";
const MANAGER = `nodekeeper/${DRIVER}/${NODE}`;

const node = useClaimsNode({ devicesKubeletPluginDeviceStatus: "true" });

/** Stores an allocated claim, and returns it as the kubelet names it. */
function claim(name: string, devices: string[], status: object = {}) {
  const results = devices.map((device) => ({ request: "req", driver: DRIVER, pool: NODE, device }));
  const other = { request: "other", driver: "other.example.com", pool: NODE, device: "device-0" };
  const stored = node.cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: {},
    status: {
      allocation: { devices: { results: [...results, other] } },
      reservedFor: [{ resource: "pods", name: "pod", uid: "11111111-2222-3333-4444-555555555555" }],
      ...status,
    },
  });
  return { namespace: "default", name, uid: stored.metadata.uid! };
}

/** A driver that reports what `report` is given. */
async function serve(): Promise<{ driver: Plugin; report: (devices: DeviceStatus[]) => void }> {
  const statuses = new LatestValue<DeviceStatus[]>();
  statuses.set([]);
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "nic-0" }, { name: "nic-1" }] }];
    },
    prepare: ({ devices }) => devices.map(({ request, pool, device }) => ({ request, pool, device })),
    unprepare: () => {},
    async *status(signal) {
      for (;;) yield await statuses.take(signal);
    },
  });
  node.drivers.push(driver);
  await driver.ready;
  return { driver, report: (devices) => statuses.set(devices) };
}

interface Entry {
  driver: string;
  device: string;
  conditions?: { type: string; status: string; lastTransitionTime: string }[];
}

const stored = (name: string) => node.cluster.server.store.get(CLAIMS, name, "default") as KubeObject;
const entriesOf = (name: string) => (stored(name).status as { devices?: Entry[] }).devices ?? [];
const versionOf = (name: string) => stored(name).metadata.resourceVersion;
const entry = (claimUid: string, device = "nic-0", status: "True" | "False" = "True"): DeviceStatus => ({
  claimUid,
  device,
  conditions: [{ type: "Ready", status, reason: "Configured" }],
});
const problem = async () =>
  (await node.agent.api("claims")).find(({ driver }: { driver: string }) => driver === DRIVER)?.problem;

it("what a driver reports reaches the claim, changes with it, and is removed with the preparation", async () => {
  await node.start();
  const { report } = await serve();
  const theirs = { driver: "other.example.com", pool: NODE, device: "device-0", data: { of: "another" } };
  const wanted = claim("one", ["nic-0", "nic-1"], { devices: [theirs] });
  await node.kubelet.prepare(DRIVER, wanted);
  const network = { interfaceName: "net1", ips: ["192.0.2.5/24"], hardwareAddress: "02:00:00:00:00:01" };
  report([
    {
      ...entry(wanted.uid),
      conditions: [{ type: "Ready", status: "True", reason: "Configured", observedGeneration: 3 }],
      data: { speed: 100, parameters: { mtu: 9_000 } },
      networkData: network,
    },
    entry(wanted.uid, "nic-1"),
  ]);
  await until("written", () => entriesOf("one").length === 3);
  const [, first] = entriesOf("one");
  expect(entriesOf("one")).toEqual([
    theirs,
    {
      driver: DRIVER,
      pool: NODE,
      device: "nic-0",
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "Configured",
          message: "",
          observedGeneration: 3,
          lastTransitionTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
        },
      ],
      data: { speed: 100, parameters: { mtu: 9_000 } },
      networkData: network,
    },
    expect.objectContaining({ device: "nic-1" }),
  ]);
  expect(stored("one").metadata.managedFields).toContainEqual(
    expect.objectContaining({ manager: MANAGER, operation: "Apply", subresource: "status" }),
  );
  // A device that is left out has no status any more; the other's condition did not change its status.
  const conditions = [{ ...entry(wanted.uid).conditions![0]!, observedGeneration: 3 }];
  report([{ ...entry(wanted.uid), conditions, data: { speed: 10 } }]);
  await until("left out", () => entriesOf("one").length === 2);
  expect(entriesOf("one")[1]?.conditions).toEqual(first?.conditions);
  await node.kubelet.unprepare(DRIVER, wanted);
  await eventually(() => expect(entriesOf("one")).toEqual([theirs]));
  expect(stored("one").metadata.managedFields?.map(({ manager }) => manager) ?? []).not.toContain(MANAGER);
});

it("the status stays while the driver is away, and is removed by an agent that was started since", async () => {
  await node.start();
  const { driver, report } = await serve();
  const [kept, ended] = [claim("kept", ["nic-0"]), claim("ended", ["nic-1"])];
  await node.kubelet.prepare(DRIVER, kept);
  await node.kubelet.prepare(DRIVER, ended);
  report([entry(kept.uid), entry(ended.uid, "nic-1")]);
  await until("both written", () => entriesOf("kept").length + entriesOf("ended").length === 2);
  await driver.stop();
  node.cluster.admit = ({ method, path }) =>
    method === "PATCH" && path.includes("resourceclaims") ? { status: 503 } : undefined;
  await node.kubelet.unprepare(DRIVER, ended);
  await node.agent.stop();
  expect(entriesOf("ended")).toHaveLength(1);
  let applied = 0;
  node.cluster.admit = ({ method, path }) => {
    if (method === "PATCH" && path.includes("/kept/")) applied++;
    return undefined;
  };
  const version = versionOf("kept");
  await node.start();
  await eventually(() => expect(entriesOf("ended")).toEqual([]));
  const again = await serve();
  again.report([entry(kept.uid)]);
  await until("reported again", () => applied > 0);
  again.report([entry(kept.uid), { ...entry(kept.uid, "nic-0") }]);
  await until("applied", async () => (await problem())?.includes("reported twice"));
  expect([versionOf("kept"), applied]).toEqual([version, 1]);
  again.report([entry(kept.uid, "nic-0", "False")]);
  await until("changed", () => entriesOf("kept")[0]?.conditions?.[0]?.status === "False");
});

it("a refused device is named, and the others are written", async () => {
  await node.start();
  const { report } = await serve();
  const wanted = claim("one", ["nic-0"]);
  await node.kubelet.prepare(DRIVER, wanted);
  report([entry(wanted.uid, "nic-1"), entry("unknown"), entry(wanted.uid)]);
  await until("written", () => entriesOf("one").length === 1);
  expect(await problem()).toBe(
    `status refused: claim "${wanted.uid}", device "${NODE}/nic-1": device: it is not allocated to the claim`,
  );
});

it("a missing right is reported once, and nothing is written in a loop", async () => {
  await node.start();
  let attempts = 0;
  node.cluster.admit = ({ method, path }) => {
    if (method !== "PATCH" || !path.endsWith("/status") || !path.includes("resourceclaims")) return undefined;
    attempts++;
    const message = 'changing status.devices requires resource="resourceclaims/driver"';
    const causes = [{ reason: "FieldValueForbidden", message, field: "status.devices" }];
    const details = { name: "one", kind: "ResourceClaim", causes };
    return {
      status: 422,
      body: { kind: "Status", status: "Failure", reason: "Invalid", message, details, code: 422 },
    };
  };
  const { report } = await serve();
  const wanted = claim("one", ["nic-0"]);
  await node.kubelet.prepare(DRIVER, wanted);
  report([entry(wanted.uid)]);
  await until("reported", async () => (await problem())?.includes("resourceclaims/driver"));
  report([entry(wanted.uid, "nic-0", "False")]);
  report([entry(wanted.uid)]);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(attempts).toBe(1);
});

it("a driver that was restarted is asked for the status once it knows its claims", async () => {
  await node.start();
  const known = new Set<string>();
  const serveAgain = async () => {
    const driver = serveDeviceDriver({
      name: DRIVER,
      socketDir: node.agent.pluginDir,
      async *devices() {
        yield [{ devices: [{ name: "nic-0" }] }];
      },
      prepare: ({ uid, devices }) => {
        known.add(uid);
        return devices.map(({ request, pool, device }) => ({ request, pool, device }));
      },
      unprepare: ({ uid }) => void known.delete(uid),
      async restore(claims) {
        // It has to find out what became of them first.
        await new Promise((resolve) => setTimeout(resolve, 300));
        for (const { uid } of claims) known.add(uid);
        return [];
      },
      async *status(signal) {
        for (; !signal.aborted; await new Promise((resolve) => setTimeout(resolve, 20)))
          yield [...known].map((uid) => entry(uid));
      },
    });
    node.drivers.push(driver);
    await driver.ready;
    return driver;
  };
  const first = await serveAgain();
  const wanted = claim("one", ["nic-0"]);
  await node.kubelet.prepare(DRIVER, wanted);
  await until("written", () => entriesOf("one").length === 1);
  const version = versionOf("one");
  await first.stop();
  known.clear();
  await serveAgain();
  await until("restored", () => known.size === 1);
  const other = claim("two", ["nic-0"]);
  known.add(other.uid);
  // A later report has arrived: those before it have changed nothing.
  await until("reported", async () => (await problem())?.includes(other.uid));
  expect(versionOf("one")).toBe(version);
});

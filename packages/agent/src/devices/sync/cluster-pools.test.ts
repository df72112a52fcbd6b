import type { KubeObject } from "@nodekeeper/core/kube";
import type { Fault, ReceivedRequest, RequestInfo } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, expect, it } from "vitest";
import { allocatable } from "../testing/allocatable.ts";
import { NODE, type Setup, setUp, specOf, type TestDriver, tearDown } from "../testing/device-cluster.ts";

afterEach(tearDown);

const DRIVER = "fabric.example.com";
const OTHER = "worker-2";
// The others look soon, so that no test waits.
const leaseTimes = { durationMs: 900, deadlineMs: 600, renewMs: 100, lookMs: 100, abandonedMs: 1_500 };
const clusterPools = { drivers: [DRIVER], leaseNamespace: "nodekeeper" };
const settings = { clusterPools };

type Agent = Awaited<ReturnType<typeof setUp>>;

/** Agents of two nodes at one API server, each with a driver that sees the same fabric. */
async function twoNodes(setup: Setup = {}): Promise<{ one: Agent; two: Agent; drivers: TestDriver[] }> {
  const one = await setUp({ settings, leaseTimes, ...setup });
  one.server.seedNode(OTHER);
  one.server.store.put({ apiVersion: "v1", kind: "Namespace", metadata: { name: "nodekeeper" } });
  const two = await setUp({ settings, leaseTimes, nodeName: OTHER, server: one.server });
  return { one, two, drivers: [await one.driver("one"), await two.driver("two")] };
}

const fabric = (...names: string[]) => ({
  name: "fabric",
  allNodes: true,
  devices: names.map((name) => ({ name })),
});
const poolsOf = (agent: Agent) => agent.sync.status()[0]?.clusterPools;
const leasesOf = ({ server }: Agent) => server.store.list("leases.coordination.k8s.io");
const ofFabric = (slices: KubeObject[]) => slices.filter((slice) => specOf(slice).pool.name === "fabric");
const devicesOn = (agent: Agent, node: string) => allocatable(agent.slices(), node).devices.sort();

it("a pool for all nodes is published once, without a node and without an owner, and is allocatable on each", async () => {
  const { one, two, drivers } = await twoNodes();
  for (const [at, agent] of [one, two].entries()) {
    drivers[at]!.reportPools([fabric("port-0", "port-1"), { devices: [{ name: `local-${at}` }] }]);
    await agent.register(DRIVER, drivers[at]!);
  }
  await until("published", () => devicesOn(one, NODE).length === 3 && devicesOn(one, OTHER).length === 3);
  expect(devicesOn(one, NODE)).toEqual(["local-0", "port-0", "port-1"]);
  expect(devicesOn(one, OTHER)).toEqual(["local-1", "port-0", "port-1"]);
  const [slice, ...more] = ofFabric(one.slices());
  expect(more).toEqual([]);
  expect(slice!.spec).toMatchObject({ driver: DRIVER, allNodes: true });
  expect(specOf(slice!).nodeName).toBeUndefined();
  expect(slice!.metadata.ownerReferences).toBeUndefined();
  await until(
    "both know the holder",
    () => poolsOf(one)?.holder && poolsOf(one)?.holder === poolsOf(two)?.holder,
  );
  expect([poolsOf(one)?.isHolder, poolsOf(two)?.isHolder].filter((each) => each)).toHaveLength(1);
});

it("the next holder takes the slices over: they are never missing, and its changes follow", async () => {
  const { one, two, drivers } = await twoNodes();
  drivers[0]!.reportPools([fabric("port-0", "port-1")]);
  await one.register(DRIVER, drivers[0]!);
  await until("published", () => devicesOn(one, OTHER).length === 2);
  drivers[1]!.reportPools([fabric("port-0", "port-1")]);
  await two.register(DRIVER, drivers[1]!);
  const [before] = ofFabric(one.slices());
  const deletions: string[] = [];
  const writes = one.writes.length;
  await one.stop();
  await until("taken over", () => poolsOf(two)?.isHolder && poolsOf(two)?.devices === 2);
  for (const { method, path } of one.writes.slice(writes)) if (method === "DELETE") deletions.push(path);
  expect(deletions).toEqual([]);
  expect(ofFabric(two.slices()).map(({ metadata }) => metadata)).toEqual([before!.metadata]);
  drivers[1]!.reportPools([fabric("port-0", "port-1", "port-2")]);
  await until("changed", () => devicesOn(two, NODE).length === 3);
  expect(ofFabric(two.slices())[0]!.metadata.uid).toBe(before!.metadata.uid);
});

it("a holder whose driver is away steps down, and deletes nothing", async () => {
  const { one, two, drivers } = await twoNodes();
  drivers[0]!.reportPools([fabric("port-0")]);
  const registration = await one.register(DRIVER, drivers[0]!);
  await until("published", () => devicesOn(one, NODE).length === 1);
  one.sync.handler.deregister(registration, "its socket is gone");
  await until("stepped down", () => poolsOf(one) === undefined || poolsOf(one)?.isHolder === false);
  // Longer than the wipe delay of the node's own slices.
  await until("forgotten", () => one.sync.status().length === 0);
  expect(devicesOn(one, OTHER)).toEqual(["port-0"]);
  drivers[1]!.reportPools([fabric("port-0", "port-1")]);
  await two.register(DRIVER, drivers[1]!);
  await until("taken over", () => devicesOn(two, NODE).length === 2);
});

it("a pool that the holder's driver no longer reports is removed, and then the lease", async () => {
  const { one, drivers } = await twoNodes();
  drivers[0]!.reportPools([fabric("port-0"), { devices: [{ name: "local" }] }]);
  await one.register(DRIVER, drivers[0]!);
  await until("published", () => devicesOn(one, NODE).length === 2);
  drivers[0]!.reportPools([{ devices: [{ name: "local" }] }]);
  await until("removed", () => ofFabric(one.slices()).length === 0);
  expect(devicesOn(one, NODE)).toEqual(["local"]);
  await until("deleted", () => leasesOf(one).length === 0);
});

it("pools that no driver reports any more are removed after a delay, also after a restart of their publisher", async () => {
  const { one, two, drivers } = await twoNodes();
  const local = { devices: [{ name: "local" }] };
  drivers[0]!.reportPools([fabric("port-0"), local]);
  await one.register(DRIVER, drivers[0]!);
  await until("published", () => devicesOn(one, NODE).length === 2);
  const others = {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name: "of-another-client" },
    spec: {
      driver: DRIVER,
      allNodes: true,
      pool: { name: "fabric-2", generation: 1, resourceSliceCount: 1 },
      devices: [{ name: "x" }],
    },
  };
  one.server.store.put(others);
  one.server.store.put({
    ...others,
    metadata: { name: "of-another-driver", labels: { "app.kubernetes.io/managed-by": "nodekeeper" } },
    spec: { ...others.spec, driver: "other.example.com" },
  });
  drivers[1]!.reportPools([local]);
  await two.register(DRIVER, drivers[1]!);
  const stoppedAt = performance.now();
  await one.stop();
  const [slice] = ofFabric(two.slices());
  await until("removed", () => ofFabric(two.slices()).length === 0);
  expect(performance.now() - stoppedAt).toBeGreaterThanOrEqual(leaseTimes.abandonedMs);
  expect(slice!.metadata.labels).toEqual({ "app.kubernetes.io/managed-by": "nodekeeper" });
  await until("deleted", () => leasesOf(two).length === 0);
  const names = two.slices().map(({ metadata }) => metadata.name!);
  expect(names).toEqual(expect.arrayContaining(["of-another-client", "of-another-driver"]));
});

it("a pool that the driver withdraws while it is being written is removed, and only then the lease", async () => {
  let written: KubeObject | undefined;
  const admit = ({ method, query, body }: ReceivedRequest): Fault | undefined => {
    if (method !== "POST" || query.has("dryRun") || written) return undefined;
    written = body as KubeObject;
    return { delayMs: 2_500 };
  };
  const { one, drivers } = await twoNodes({ admit });
  drivers[0]!.reportPools([fabric("port-0")]);
  await one.register(DRIVER, drivers[0]!);
  const slice = await until("the write is under way", () => written);
  drivers[0]!.reportPools([]);
  const arrivesAt = performance.now() + 2_000;
  await until("several looks later", () => performance.now() > arrivesAt);
  // The server handles a request also after its client has given it up.
  one.server.store.put(slice);
  await until("removed", () => ofFabric(one.slices()).length === 0);
  await until("deleted", () => leasesOf(one).length === 0);
});

it("a driver that never reports such pools has no lease", async () => {
  const { one, drivers } = await twoNodes();
  drivers[0]!.reportPools([{ devices: [{ name: "local" }] }]);
  await one.register(DRIVER, drivers[0]!);
  await until("published", () => devicesOn(one, NODE).length === 1);
  const endsAt = performance.now() + 2 * leaseTimes.abandonedMs;
  await until("the delay is over", () => performance.now() > endsAt);
  expect(leasesOf(one)).toEqual([]);
});

it("a driver that comes back without its pools has them removed", async () => {
  const { one, drivers } = await twoNodes();
  drivers[0]!.reportPools([fabric("port-0"), { devices: [{ name: "local" }] }]);
  const registration = await one.register(DRIVER, drivers[0]!);
  await until("published", () => devicesOn(one, NODE).length === 2);
  one.sync.handler.deregister(registration, "its socket is gone");
  await until("stepped down", () => poolsOf(one)?.isHolder !== true);
  expect(ofFabric(one.slices())).toHaveLength(1);
  drivers[0]!.reportPools([{ devices: [{ name: "local" }] }]);
  await one.register(DRIVER, drivers[0]!);
  await until("removed", () => ofFabric(one.slices()).length === 0);
});

it("a pool that needs a feature concerns no other pool, and other clients are not fought without pause", async () => {
  const { one, drivers } = await twoNodes({ settings: { ...settings, wipeDelay: 60_000 } });
  drivers[0]!.reportPools([
    {
      ...fabric(),
      devices: [
        {
          name: "port-0",
          bindingConditions: ["example.com/Attached"],
          bindingFailureConditions: ["example.com/Failed"],
        },
      ],
    },
    { devices: [{ name: "local" }] },
  ]);
  await one.register(DRIVER, drivers[0]!);
  await until("published", () => poolsOf(one)?.devices === 1 && one.sync.status()[0]?.devices === 1);
  expect(one.sync.status()[0]).toMatchObject({ quarantined: 0, problems: [] });
  const before = one.writes.length;
  const endsAt = performance.now() + 2_000;
  while (performance.now() < endsAt) {
    for (const { metadata } of ofFabric(one.slices()))
      one.server.store.delete("resourceslices.resource.k8s.io", metadata.name!);
    // Each reading of the metrics does this.
    one.sync.status();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(one.writes.length - before).toBeLessThan(20);
});

it("a driver that is stuck on the holder's node does not taint the devices for others", async () => {
  const { one, drivers } = await twoNodes();
  drivers[0]!.reportPools([fabric("port-0"), { devices: [{ name: "local" }] }]);
  await one.register(DRIVER, drivers[0]!);
  await until("published", () => devicesOn(one, NODE).length === 2);
  one.sync.handler.setTaints(DRIVER, { isStuck: true, byDevice: new Map() });
  await until("stepped down", () => poolsOf(one)?.isHolder !== true);
  await until("its own is tainted", () => devicesOn(one, NODE).length === 1);
  expect(devicesOn(one, OTHER)).toEqual(["port-0"]);
});

it("a driver that the setting does not name is told why its pool is refused", async () => {
  const agent = await setUp({ settings: { clusterPools: { ...clusterPools, drivers: [] } }, leaseTimes });
  const driver = await agent.driver("fabric");
  driver.reportPools([fabric("port-0"), { devices: [{ name: "local" }] }]);
  await agent.register(DRIVER, driver);
  await until("published", () => agent.devices().length === 1);
  expect(agent.sync.status()[0]).toMatchObject({
    problems: [{ pool: "fabric", field: "nodes", message: /devices.clusterPools.drivers/ }],
  });
  expect(leasesOf(agent)).toEqual([]);
});

it("a pool with the name of another node's pool is refused until that pool is gone; the others are published", async () => {
  let aheadMs = 0;
  let lists = 0;
  const faults = ({ query }: RequestInfo) => {
    if (query.get("limit") === "100") lists++;
    return undefined;
  };
  const { one, two, drivers } = await twoNodes({ ahead: () => aheadMs, faults });
  drivers[1]!.reportPools([{ name: "shelf", devices: [{ name: "local" }] }, { devices: [{ name: "own" }] }]);
  await two.register(DRIVER, drivers[1]!);
  await until("published", () => devicesOn(two, OTHER).length === 2);
  const report = [
    { ...fabric("port-0", "port-1"), name: "shelf" },
    { ...fabric("x"), name: OTHER },
    fabric("y"),
  ];
  drivers[0]!.reportPools(report);
  await one.register(DRIVER, drivers[0]!);
  await until("told", () => one.sync.problemsOf(DRIVER).length === 2);
  expect(one.sync.problemsOf(DRIVER)).toMatchObject([
    {
      pool: "shelf",
      message: expect.stringMatching(/^name: refused: node worker-2 has a pool of this name/),
    },
    { pool: OTHER, message: expect.stringMatching(/worker-2/) },
  ]);
  await until("published", () => devicesOn(one, NODE).length === 1);
  expect(devicesOn(one, OTHER)).toEqual(["local", "own", "y"]);
  expect(one.sync.status()[0]).toMatchObject({
    quarantined: 3,
    problems: [{ pool: "shelf" }, { pool: OTHER }],
  });
  expect(lists).toBe(1);
  drivers[1]!.reportPools([{ devices: [{ name: "own" }] }]);
  await until("gone", () => devicesOn(two, OTHER).length === 2);
  aheadMs = 300_000;
  drivers[0]!.reportPools(report.toReversed());
  await until("published", () => devicesOn(one, NODE).length === 3);
  expect(devicesOn(one, OTHER)).toEqual(["own", "port-0", "port-1", "y"]);
});

it("on Kubernetes 1.30, which has no such pools, the driver is told, and no lease is taken", async () => {
  const path = "/apis/resource.k8s.io";
  const resource = { name: "resourceslices", kind: "ResourceSlice", namespaced: false, verbs: ["list"] };
  const faults = ({ path: asked }: RequestInfo): Fault | undefined => {
    if (asked === `${path}/v1alpha2`)
      return { status: 200, body: { kind: "APIResourceList", resources: [resource] } };
    if (asked.startsWith(`${path}/v1alpha2/`))
      return { status: 200, body: { kind: "List", metadata: { resourceVersion: "1" }, items: [] } };
    return asked.startsWith(`${path}/v1`) ? { status: 404 } : undefined;
  };
  const agent = await setUp({ settings, leaseTimes, faults });
  agent.server.store.put({ apiVersion: "v1", kind: "Namespace", metadata: { name: "nodekeeper" } });
  const driver = await agent.driver("fabric");
  driver.reportPools([fabric("port-0", "port-1"), { devices: [{ name: "local" }] }]);
  await agent.register(DRIVER, driver);
  await until("told", () => agent.sync.status()[0]?.problems.length === 1);
  expect(agent.sync.status()[0]).toMatchObject({
    reported: 1,
    quarantined: 2,
    problems: [{ pool: "fabric", field: "nodes", message: /Kubernetes 1\.30 .*v1alpha2/ }],
  });
  const endsAt = performance.now() + 3_000;
  await until("several looks later", () => performance.now() > endsAt);
  expect(leasesOf(agent)).toEqual([]);
  expect(poolsOf(agent)).toMatchObject({ isHolder: false, holder: undefined });
});

it("why a lease can't be had is shown", async () => {
  const agent = await setUp({ settings, leaseTimes });
  const driver = await agent.driver("fabric");
  driver.reportPools([fabric("port-0")]);
  await agent.register(DRIVER, driver);
  await until("shown", () => /namespaces? .*nodekeeper/.test(poolsOf(agent)?.writeError ?? ""));
  agent.server.store.put({ apiVersion: "v1", kind: "Namespace", metadata: { name: "nodekeeper" } });
  await until("published", () => poolsOf(agent)?.devices === 1);
  expect(poolsOf(agent)?.writeError).toBeUndefined();
});

it("slices of another client in such a pool are superseded only by the holder, those of other drivers stay", async () => {
  const { one, drivers } = await twoNodes();
  drivers[0]!.reportPools([
    {
      name: "rack",
      nodeSelector: { terms: [{ matchExpressions: [{ key: "rack", operator: "Exists" }] }] },
      devices: [{ name: "port" }],
    },
    {
      name: "split",
      perDeviceNodes: true,
      devices: [
        { name: "left", nodeName: NODE },
        { name: "right", nodeName: OTHER },
      ],
    },
  ]);
  const foreign = (driver: string, name: string) => ({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceSlice",
    metadata: { name },
    spec: {
      driver,
      allNodes: true,
      pool: { name: "rack", generation: 7, resourceSliceCount: 1 },
      devices: [{ name: "x" }],
    },
  });
  one.server.store.put(foreign(DRIVER, "same-driver"));
  one.server.store.put(foreign("other.example.com", "other-driver"));
  await one.register(DRIVER, drivers[0]!);
  await until("published", () => !one.slices().some(({ metadata }) => metadata.name === "same-driver"));
  await until("whole", () => poolsOf(one)?.devices === 3);
  const names = one.slices().map((slice) => specOf(slice).pool.name);
  expect(names.sort()).toEqual(["rack", "rack", "split"]);
  const split = one.slices().find((slice) => specOf(slice).pool.name === "split");
  expect(split!.spec).toMatchObject({
    perDeviceNodeSelection: true,
    devices: [
      { name: "left", nodeName: NODE },
      { name: "right", nodeName: OTHER },
    ],
  });
});

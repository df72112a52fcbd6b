import type { KubeObject } from "@nodekeeper/core/kube";
import { LatestValue } from "@nodekeeper/core/lib";
import { type ClaimToBind, type DeviceStatus, serveDeviceDriver } from "@nodekeeper/sdk";
import { eventually, until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const DRIVER = "fabric.example.com";
const CLAIMS = "resourceclaims.resource.k8s.io";
const CONDITION = "example.com/Attached";

const node = useClaimsNode({ devicesKubeletPluginDeviceStatus: "true" });
const store = () => node.cluster.server.store;

/** Stores a pod that the scheduler has nominated the node for, and its claim as it is before PreBind. */
function waitingPod(name: string) {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      serviceAccountName: "workload",
      containers: [],
      resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "gpu" }],
    },
    status: {
      nominatedNodeName: NODE,
      resourceClaimStatuses: [{ name: "gpu", resourceClaimName: `${name}-gpu` }],
    },
  };
  const claim = {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name: `${name}-gpu`, namespace: "default" },
    spec: {},
  };
  const stored = store().put(claim);
  return {
    pod: store().put(pod),
    claim: { namespace: "default", name: `${name}-gpu`, uid: stored.metadata.uid! },
  };
}

const stored = (name: string) => store().get(CLAIMS, name, "default") as KubeObject;
const conditionsOf = (name: string) =>
  (
    (stored(name).status as { devices?: { conditions: { type: string; status: string }[] }[] })?.devices ?? []
  ).map(({ conditions }) => conditions.map(({ type, status }) => `${type}=${status}`).join());

/** Allocates a claim as the scheduler does: a device with binding conditions, one without, and one of another driver. */
function allocate(claim: { name: string }, pod: KubeObject, allocationTimestamp: string) {
  const result = (driver: string, device: string, conditions?: string[]) => ({
    request: "req",
    driver,
    pool: "fabric",
    device,
    ...(conditions && { bindingConditions: conditions, bindingFailureConditions: ["example.com/Failed"] }),
  });
  const results = [
    result(DRIVER, "gpu-0", [CONDITION]),
    result(DRIVER, "gpu-1"),
    result("other.example.com", "gpu-0", ["B"]),
  ];
  const { devices: _, ...status } = (stored(claim.name).status ?? {}) as { devices?: unknown };
  store().put({
    ...stored(claim.name),
    status: {
      ...status,
      allocation: { allocationTimestamp, devices: { results } },
      reservedFor: [{ resource: "pods", name: pod.metadata.name, uid: pod.metadata.uid }],
    },
  });
}

function deallocate({ name }: { name: string }) {
  store().put({ ...stored(name), status: {} });
}

const bindingDevice = {
  name: "gpu-0",
  bindingConditions: [CONDITION],
  bindingFailureConditions: ["example.com/Failed"],
};

/** A driver that reports what `report` is given, and what it was told. */
async function serve() {
  const statuses = new LatestValue<DeviceStatus[]>();
  statuses.set([]);
  const told: ClaimToBind[][] = [];
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [bindingDevice] }];
    },
    prepare: ({ devices }) => devices.map(({ request, pool, device }) => ({ request, pool, device })),
    unprepare: () => {},
    onAllocations: (claims) => void told.push(claims),
    async *status(signal) {
      for (;;) yield await statuses.take(signal);
    },
  });
  node.drivers.push(driver);
  await driver.ready;
  return {
    driver,
    told,
    last: () => told.at(-1),
    report: (devices: DeviceStatus[]) => statuses.set(devices),
  };
}

const attached = (claimUid: string, status: "True" | "False" = "True"): DeviceStatus => ({
  claimUid,
  pool: "fabric",
  device: "gpu-0",
  conditions: [{ type: CONDITION, status, reason: "Attached" }],
});

it("a driver is told of an allocation before the pod is bound, and its condition stays until it is prepared and longer", async () => {
  await node.start();
  const { last, told, report } = await serve();
  await until("told that there is none", () => told.length === 1);
  const { pod, claim } = waitingPod("one");
  waitingPod("not-allocated");
  allocate(claim, pod, "2026-03-01T12:00:00Z");
  await until("told", () => last()?.length === 1);
  expect(last()).toMatchObject([
    {
      ...claim,
      pods: [{ name: "one", uid: pod.metadata.uid, namespace: "default", serviceAccount: "workload" }],
      devices: [
        {
          pool: "fabric",
          device: "gpu-0",
          bindingConditions: [CONDITION],
          bindingFailureConditions: ["example.com/Failed"],
        },
      ],
      allocatedAt: new Date("2026-03-01T12:00:00Z"),
    },
  ]);
  expect(last()?.[0]?.devices).toHaveLength(1);
  report([attached(claim.uid)]);
  await until("written", () => conditionsOf(claim.name).length === 1);
  expect(conditionsOf(claim.name)).toEqual([`${CONDITION}=True`]);

  // The scheduler binds the pod, and the agent is started again before the kubelet calls.
  store().put({
    ...store().get("pods", "one", "default")!,
    spec: { ...(pod.spec as object), nodeName: NODE },
  });
  await node.agent.stop();
  const before = told.length;
  await node.start();
  await until("told by the next agent", () => told.length > before);
  const { resourceVersion } = stored(claim.name).metadata;
  await node.kubelet.prepare(DRIVER, claim);
  await until("told that it is prepared", () => last()?.length === 0);
  expect(told.slice(before).map((claims) => claims.length)).toEqual([1, 0]);
  expect(stored(claim.name).metadata.resourceVersion).toBe(resourceVersion);
  await node.kubelet.unprepare(DRIVER, claim);
  report([]);
  await until("withdrawn by the driver", () => conditionsOf(claim.name).length === 0);
  expect(last()).toEqual([]);
});

it("an agent that was killed tells the driver again, without that the claim ever seems to be gone", async () => {
  await node.start();
  const { last, told, report } = await serve();
  const { pod, claim } = waitingPod("one");
  allocate(claim, pod, "2026-03-01T12:00:00Z");
  await until("told", () => last()?.length === 1);
  await node.agent.stop();
  const before = told.length;
  report([attached(claim.uid)]);
  await node.start();
  await until("written", () => conditionsOf(claim.name).length === 1);
  expect(told.slice(before).map((claims) => claims.length)).toEqual([1]);
});

it("a claim that was deallocated and allocated again begins anew", async () => {
  await node.start();
  const { last, told, report } = await serve();
  const { pod, claim } = waitingPod("one");
  allocate(claim, pod, "2026-03-01T12:00:00Z");
  await until("told", () => last()?.length === 1);
  report([attached(claim.uid, "False")]);
  await until("written", () => conditionsOf(claim.name)[0] === `${CONDITION}=False`);
  deallocate(claim);
  await until("told of the end", () => last()?.length === 0);
  report([]);
  allocate(claim, pod, "2026-03-01T12:00:10Z");
  await until("told again", () => last()?.length === 1);
  expect(last()?.[0]?.allocatedAt).toEqual(new Date("2026-03-01T12:00:10Z"));
  report([attached(claim.uid)]);
  await eventually(() => expect(conditionsOf(claim.name)).toEqual([`${CONDITION}=True`]));
  expect(told.flat().every(({ uid }) => uid === claim.uid)).toBe(true);
});

it("a claim that nobody saw deallocated is left out once, and has no condition until the driver has stated it anew", async () => {
  await node.start();
  const told: string[][] = [];
  /** By UID: devices that are attached. Such as of a driver that keeps no times of allocations. */
  const attachedClaims = new Set<string>();
  const changed = new LatestValue<true>();
  /** How many lists the driver had got when it was asked for the status. */
  const asked: number[] = [];
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [bindingDevice] }];
    },
    prepare: () => [],
    unprepare: () => {},
    onAllocations(claims) {
      told.push(claims.map(({ allocatedAt }) => allocatedAt.toISOString()));
      for (const uid of attachedClaims)
        if (!claims.some((claim) => claim.uid === uid)) attachedClaims.delete(uid);
      changed.set(true);
    },
    async *status(signal) {
      asked.push(told.length);
      for (;;) {
        await changed.take(signal);
        yield [...attachedClaims].map((uid) => attached(uid));
      }
    },
  });
  node.drivers.push(driver);
  await driver.ready;
  const attach = ({ uid }: { uid: string }) => {
    attachedClaims.add(uid);
    changed.set(true);
  };
  const { pod, claim } = waitingPod("one");
  allocate(claim, pod, "2026-03-01T12:00:00Z");
  await until("told", () => told.at(-1)?.length === 1);
  attach(claim);
  await until("written", () => conditionsOf(claim.name).length === 1);
  deallocate(claim);
  allocate(claim, pod, "2026-03-01T12:00:10Z");
  await until("told again", () => told.at(-1)?.[0]?.startsWith("2026-03-01T12:00:10"));
  expect(told.slice(-3).map((times) => times.length)).toEqual([1, 0, 1]);
  expect(conditionsOf(claim.name)).toEqual([]);
  attach(claim);
  await until("written again", () => conditionsOf(claim.name).length === 1);
  // The status is asked for after the driver was told of claims.
  expect(asked[0]).toBeGreaterThan(0);
});

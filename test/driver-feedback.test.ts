import { LatestValue } from "@nodekeeper/core/lib";
import {
  type ContainerEdits,
  type DeviceHealth,
  type DevicePool,
  type DeviceStatus,
  type DriverProblem,
  serveDeviceDriver,
} from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { beforeEach, expect, it } from "vitest";
import { useClaimsNode } from "./support/claims-node.ts";
import { NODE } from "./support/cluster.ts";

const node = useClaimsNode({
  devicesMinWriteInterval: "0s",
  devicesKubeletPluginDeviceStatus: "true",
});

beforeEach(() => node.start());

it("a driver with an invalid device is told so, also by an agent that was restarted, and that it has repaired it", async () => {
  const told: DriverProblem[][] = [];
  let pools: DevicePool[] = [{ devices: [{ name: "gpu-0" }, { name: "GPU_1" }] }];
  let changed = Promise.withResolvers<void>();
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir: node.agent.pluginDir,
    async *devices() {
      for (;;) {
        const next = changed.promise;
        yield pools;
        await next;
      }
    },
    onProblems: (problems) => void told.push(problems),
  });
  node.drivers.push(driver);
  const problem = { errorId: "NK1503", pool: NODE, device: "GPU_1", since: expect.any(Date) };
  await until("told", () => told.length === 1);
  expect(told[0]).toMatchObject([{ ...problem, message: expect.stringContaining("name") }]);
  await node.agent.stop();
  await node.start();
  await until("told by the next agent", () => told.length === 2);
  expect(told[1]).toMatchObject([problem]);
  pools = [{ devices: [{ name: "gpu-0" }, { name: "gpu-1" }] }];
  changed.resolve();
  changed = Promise.withResolvers();
  await until("told the end", () => told.length === 3);
  expect(told[2]).toEqual([]);
});

const DRIVER = "gpu.example.com";

function claim(name: string, device: string) {
  const results = [{ request: "req", driver: DRIVER, pool: NODE, device }];
  const { metadata } = node.cluster.server.store.put({
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: "default" },
    spec: {},
    status: { allocation: { devices: { results } }, reservedFor: [] },
  });
  return { namespace: "default", name, uid: metadata.uid! };
}

it("a driver whose answers and reports about claims are refused is told so, until they are right", async () => {
  let told: DriverProblem[] = [];
  let edits: ContainerEdits = { mounts: [{ hostPath: "no-path", containerPath: "/data" }] };
  const statuses = new LatestValue<DeviceStatus[]>();
  const healths = new LatestValue<DeviceHealth[]>();
  const driver = serveDeviceDriver({
    name: DRIVER,
    socketDir: node.agent.pluginDir,
    async *devices() {
      yield [{ devices: [{ name: "gpu-0" }, { name: "gpu-1" }] }];
    },
    prepare: ({ devices }) => devices.map(({ request, pool, device }) => ({ request, pool, device, edits })),
    unprepare: () => {},
    restore: () => ["no-such-claim"],
    async *status(signal) {
      for (;;) yield await statuses.take(signal);
    },
    async *health(signal) {
      for (;;) yield await healths.take(signal);
    },
    onProblems: (problems) => {
      told = problems;
    },
  });
  node.drivers.push(driver);
  statuses.set([]);
  healths.set([]);
  const ids = () => told.map(({ errorId }) => errorId).sort();
  const [wanted, ended] = [claim("wanted", "gpu-0"), claim("ended", "gpu-1")];
  await until("registered", async () => (await node.agent.plugin(DRIVER))?.state === "registered");
  for (const each of [wanted, ended])
    expect((await node.kubelet.prepare(DRIVER, each))[each.uid]!.error).toContain("NK1507");
  await until("told", () => ids().join() === "NK1507,NK1507,NK1507");
  expect(told).toContainEqual({
    ...{ errorId: "NK1507", pool: NODE, device: "gpu-0", claimUid: wanted.uid, since: expect.any(Date) },
    message: expect.stringContaining("mounts"),
  });
  expect(told).toContainEqual(expect.objectContaining({ claimUid: "no-such-claim" }));
  const shown = { errorId: "NK1507", device: "gpu-1", claimUid: ended.uid, since: expect.any(Number) };
  const row = await node.agent.plugin(DRIVER);
  expect(row?.driverProblems).toContainEqual(expect.objectContaining(shown));
  expect((await node.agent.api("devices"))[0].claimProblems).toEqual(row?.driverProblems);

  edits = { env: { A: "b" } };
  await node.kubelet.prepare(DRIVER, wanted);
  await node.kubelet.unprepare(DRIVER, ended);
  await until("prepared, and unprepared", () => ids().join() === "NK1507");
  const entry = (claimUid: string) => ({ claimUid, device: "gpu-0", data: { a: 1 } });
  statuses.set([entry(wanted.uid), entry(ended.uid)]);
  healths.set([{ device: "gpu-0", healthy: false, taintEffect: "NoExec" as "NoExecute" }]);
  await until("reported", () => ids().join() === "NK1505,NK1507,NK1520");
  expect(told).toContainEqual(
    expect.objectContaining({ errorId: "NK1520", claimUid: ended.uid, device: "gpu-0" }),
  );
  statuses.set([entry(wanted.uid)]);
  healths.set([{ device: "gpu-0", healthy: true }]);
  await until("corrected", () => ids().join() === "NK1507");
});

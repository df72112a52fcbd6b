import { describe, expect, it } from "vitest";
import { cpuBetween } from "../host/pod-activity.ts";
import { fixtureReadings, never, testPod, topQuestion } from "../intree/eviction/testing/parts.ts";
import { PodDisks } from "../pod-usage/index.ts";
import { HostNodeReadings, podUsageOf } from "./host-node-readings.ts";
import { policyOf, TestNode } from "./testing/policies.ts";

/** A field of each part of the node. */
const all = [
  "memory",
  "cpu",
  "pids",
  "psi.memory",
  "psi.cpu",
  "psi.io",
  "nodefs",
  "imagefs",
  "containerfs",
  "allocatableMemory",
].map((part) => `node.${part}.x`);

/** Policies' readings of a made-up machine; its file systems are this machine's own. */
function readingsOn(machine: string, imagefs = "/") {
  const { clock, readings, ...usage } = fixtureReadings(machine);
  return {
    clock,
    hostReadings: readings,
    readings: new HostNodeReadings({
      readings,
      nodefsPath: "/",
      imagefsPath: async () => imagefs,
      containerfsPath: async () => imagefs,
    }),
    podUsage: podUsageOf({ ...usage, readings }),
  };
}

describe("the node", () => {
  it("has all parts on a machine that reports them", async () => {
    const { clock, readings } = readingsOn("one-socket-v2");
    const snapshot = await readings.read(all, never);
    const at = clock.monotonic();
    const kibi = 1024;
    expect(snapshot.memory).toEqual({
      at,
      value: {
        total: 65_746_560 * kibi,
        free: 6_291_456 * kibi,
        available: 30_408_704 * kibi,
        // Without 11 GiB of idle page cache.
        workingSet: (65_746_560 - 6_291_456 - 11_534_336) * kibi,
      },
    });
    expect(snapshot.psi.memory).toMatchObject({
      at,
      value: { some: { avg10: 1.25, avg60: 0.8, avg300: 0.31 }, full: { avg10: 0.5 } },
    });
    expect(snapshot.pids).toEqual({ at, value: { max: 513_204, current: 2431 } });
    // 56 GiB for all pods, of 40 GiB in use 6 GiB idle page cache.
    expect(snapshot.allocatableMemory).toEqual({
      at,
      value: { capacity: 56 * 2 ** 30, workingSet: 34 * 2 ** 30 },
    });
    expect(snapshot.containerfs).toMatchObject({ value: { isSeparate: 0 } });
    expect(snapshot.cpu).toMatchObject({ missing: expect.stringContaining("two readings") });
  });

  it("lacks what the machine does not have", async () => {
    const { readings } = readingsOn("two-sockets-v1", "/no/such/place");
    const { psi, imagefs } = await readings.read(all, never);
    expect(psi.memory).toMatchObject({ missing: expect.stringContaining("does not report it") });
    expect(imagefs).toMatchObject({ missing: expect.any(String) });
    const { imagefs: unset } = await new HostNodeReadings({
      readings: readingsOfNothing,
      nodefsPath: "/",
      imagefsPath: async () => {
        throw new Error("the runtime is unavailable");
      },
      containerfsPath: async () => "/",
    }).read(all, never);
    expect(unset).toEqual({ missing: "the runtime is unavailable" });
  });

  it("has no working set where the machine does not report the idle page cache", async () => {
    const value = { totalBytes: 100, freeBytes: 40, availableBytes: undefined, inactiveFileBytes: undefined };
    const memory = async () =>
      ({ state: "read", at: 5, problems: [], value: { ...value, watermarkScaleFactor: undefined } }) as const;
    const readings = { ...readingsOfNothing, memory };
    const snapshot = await new HostNodeReadings({
      readings,
      nodefsPath: "/",
      imagefsPath: async () => "/",
      containerfsPath: async () => "/",
    }).read(all, never);
    expect(snapshot.memory).toEqual({ at: 5, value: { total: 100, free: 40, available: undefined } });
  });

  it("has no inodes where the file system makes them as it needs them", async () => {
    const filesystem = async (path: string) =>
      ({
        state: "read",
        at: 5,
        problems: [],
        value: { path, sizeBytes: 100, availableBytes: 40, inodes: 0, inodesFree: 0 },
      }) as const;
    const readings = { ...readingsOfNothing, filesystem };
    const { nodefs } = await new HostNodeReadings({
      readings,
      nodefsPath: "/",
      imagefsPath: async () => "/",
      containerfsPath: async () => "/",
    }).read(all, never);
    expect(nodefs).toEqual({ at: 5, value: { capacity: 100, available: 40 } });
  });
});

it("reads of the node only what a policy asks for", async () => {
  const asked: string[] = [];
  const readings = Object.fromEntries(
    Object.keys(readingsOfNothing).map((name) => [
      name,
      async () => {
        asked.push(name);
        return await nothing();
      },
    ]),
  ) as typeof readingsOfNothing;
  const paths = { nodefsPath: "/", imagefsPath: async () => "/", containerfsPath: async () => "/" };
  const node = new HostNodeReadings({ readings, ...paths });
  await node.read(["node.memory.total", "node.psi.io.some.avg10"], never);
  expect(asked.splice(0).sort()).toEqual(["memory", "pressure"]);
  await node.read(["node.nodefs.available"], never);
  expect(asked).toEqual(["filesystem"]);
});

describe("what pods use", () => {
  const pod = testPod("2f0c1b9e-93c4-4d8a-b0a5-6c1f6d0e7b02");

  it("has CPUs from the second look on, and processes", async () => {
    const { clock, podUsage } = readingsOn("one-socket-v2");
    const reads = ["pod.usage.cpu", "pod.usage.pids"];
    const usage = async () => {
      const part = await podUsage([pod], reads, never);
      return "value" in part ? part.value.get(pod.pod.uid) : part;
    };
    expect(await usage()).toEqual({ cpu: undefined, pids: 37 });
    await clock.step(5_000);
    // Made-up counters stand still.
    expect(await usage()).toEqual({ cpu: 0, pids: 37 });
  });

  it("is read on cgroup v1 too", async () => {
    const { clock, podUsage } = readingsOn("two-sockets-v1");
    await podUsage([], ["pod.usage.cpu"], never);
    await clock.step(5_000);
    const part = await podUsage([], ["pod.usage.cpu"], never);
    expect("value" in part && part.value.get("b0a4f7c3-7a1e-4f0b-9a44-5d1de1f3ab02")).toEqual({
      cpu: 0,
      pids: 12,
    });
  });

  it("has on disk what the runtime measured of all containers", async () => {
    const { clock, hostReadings } = readingsOn("one-socket-v2");
    const layer = (usedBytes: bigint | undefined) => ({
      id: "c",
      writableLayer: usedBytes === undefined ? undefined : { usedBytes, inodesUsed: 3n },
    });
    const of = (uid: string, containers: ReturnType<typeof layer>[]) => {
      return { uid, cpu: undefined, memory: undefined, containers };
    };
    let calls = 0;
    const runtimeStats = {
      podStats: async () => {
        calls++;
        return [of("a", [layer(5n), layer(6n)]), of("b", [layer(5n), layer(undefined)]), of("c", [])];
      },
    };
    const memories = { of: () => Promise.reject(new Error("is not wanted")) };
    const disks = new PodDisks({ runtimeStats, clock });
    const read = podUsageOf({ memories, disks, readings: hostReadings });
    const part = await read([], ["pod.usage.disk", "pod.usage.inodes"], never);
    const unknown = { disk: undefined, inodes: undefined };
    expect("value" in part && [...part.value]).toEqual([
      ["a", { disk: 11, inodes: 6 }],
      ["b", unknown],
      ["c", unknown],
    ]);
    await read([], ["pod.usage.disk"], never);
    expect(calls).toBe(1);
  });

  it("is missing where no runtime is asked", async () => {
    const { podUsage } = readingsOn("one-socket-v2");
    expect(await podUsage([], ["pod.usage.disk"], never)).toMatchObject({
      missing: "no container runtime is configured",
    });
  });
});

it.each([
  ["counters that advanced", { cpuSeconds: 5, pids: 1 }, { cpuSeconds: 7.5, pids: 1 }, 5_000, 0.5],
  ["a counter that went back", { cpuSeconds: 5, pids: 1 }, { cpuSeconds: 1, pids: 1 }, 5_000, undefined],
  ["no counter before", undefined, { cpuSeconds: 1, pids: 1 }, 5_000, undefined],
  ["no time between", { cpuSeconds: 5, pids: 1 }, { cpuSeconds: 7, pids: 1 }, 0, undefined],
])("CPUs by %s", (_, before, after, elapsedMs, cpu) => {
  expect(cpuBetween(before, after, elapsedMs)).toBe(cpu);
});

const nothing = async () => ({ state: "missing", at: 0, message: "not there" }) as const;
const readingsOfNothing = {
  memory: nothing,
  cpu: nothing,
  pids: nothing,
  pressure: nothing,
  filesystem: nothing,
  allocatableMemory: nothing,
};

it("a policy picks the pod that uses most, by its cgroup", async () => {
  const { readings, podUsage } = readingsOn("one-socket-v2");
  const node = new TestNode();
  const source = node.source(
    policyOf(`
name: stalled
type: hard
when: node.psi.memory.some.avg10 > 1 && node.memory.workingSet > quantity("40Gi")
rank: [pod.usage.rss / pod.requests.memory]`),
    { readings, podUsage },
  );
  expect((await source.thresholdMet([], never)).metType).toBe("hard");
  const pods = [
    testPod("2f0c1b9e-93c4-4d8a-b0a5-6c1f6d0e7b02", { requests: [{ memory: "8Gi" }, { memory: "6Gi" }] }),
    testPod("8a7f4c52-0d0e-4f57-9d9f-0c3d5b1c7a01", { requests: [{ memory: "8Gi" }] }),
    // It asks for nothing, so there is nothing to divide by.
    testPod("c3d9e6aa-5b1f-4b3e-8f0a-17a7f2f4dc03"),
  ];
  const { pods: top } = await source.getTopEvictionPods(pods, topQuestion("", "", 3), never);
  expect(top.map(({ uid }) => uid)).toEqual([pods[0]!.pod.uid, pods[1]!.pod.uid]);
});

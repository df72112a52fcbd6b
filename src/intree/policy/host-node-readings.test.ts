import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Host, HostReadings, PodReadings } from "../../host/index.ts";
import { FakeClock } from "../../lib/index.ts";
import { PodMemories } from "../eviction/pod-memory.ts";
import { never, testPod, topQuestion } from "../eviction/testing/parts.ts";
import { HostNodeReadings, podUsageOf } from "./host-node-readings.ts";
import { policyOf, TestNode } from "./testing/policies.ts";

const fixtures = join(import.meta.dirname, "../../../test/fixtures/host");

/** Policies' readings of a made-up machine; its file systems are this machine's own. */
function readingsOn(machine: string, imagefs = "/") {
  const root = join(fixtures, machine);
  const clock = new FakeClock();
  const readings = new HostReadings({
    host: new Host({ root, clock }),
    pods: new PodReadings({ root, clock }),
    clock,
    maxAgeMs: () => 1_000,
  });
  return {
    clock,
    readings: new HostNodeReadings({ readings, nodefsPath: "/", imagefsPath: async () => imagefs }),
    podUsage: podUsageOf(new PodMemories({ readings, runtimeStats: undefined, clock })),
  };
}

describe("the node", () => {
  it("has all parts on a machine that tells them", async () => {
    const { clock, readings } = readingsOn("one-socket-v2");
    const snapshot = await readings.read(never);
    const at = clock.now();
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
    expect(snapshot.cpu).toMatchObject({ missing: expect.stringContaining("two readings") });
  });

  it("lacks what the machine does not have", async () => {
    const { readings } = readingsOn("two-sockets-v1", "/no/such/place");
    const { psi, imagefs } = await readings.read(never);
    expect(psi.memory).toMatchObject({ missing: expect.stringContaining("does not tell") });
    expect(imagefs).toMatchObject({ missing: expect.any(String) });
    const { imagefs: unset } = await new HostNodeReadings({
      readings: readingsOfNothing,
      nodefsPath: "/",
      imagefsPath: async () => {
        throw new Error("the runtime is away");
      },
    }).read(never);
    expect(unset).toEqual({ missing: "the runtime is away" });
  });

  it("has no working set where the machine does not tell the idle page cache", async () => {
    const value = { totalBytes: 100, freeBytes: 40, availableBytes: undefined, inactiveFileBytes: undefined };
    const memory = async () =>
      ({ state: "read", at: 5, problems: [], value: { ...value, watermarkScaleFactor: undefined } }) as const;
    const readings = { ...readingsOfNothing, memory };
    const snapshot = await new HostNodeReadings({
      readings,
      nodefsPath: "/",
      imagefsPath: async () => "/",
    }).read(never);
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
    }).read(never);
    expect(nodefs).toEqual({ at: 5, value: { capacity: 100, available: 40 } });
  });
});

const nothing = async () => ({ state: "missing", at: 0, message: "not there" }) as const;
const readingsOfNothing = {
  memory: nothing,
  cpu: nothing,
  pids: nothing,
  pressure: nothing,
  filesystem: nothing,
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

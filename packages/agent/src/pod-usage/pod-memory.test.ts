import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { Gi, never, TestMachine, testPod, uses } from "../intree/eviction/testing/parts.ts";
import { type MeasuredPod, rankingMetrics, rankVictims } from "../intree/eviction/victims.ts";
import type { PodStats } from "../runtime/index.ts";
import { PodMemories } from "./pod-memory.ts";

const pods = [testPod("a"), testPod("b")];

function setup(answer: (machine: TestMachine) => Promise<PodStats[]>) {
  const machine = new TestMachine();
  machine.pods = { a: { memory: uses(Gi) } };
  const { readings, clock } = machine;
  let calls = 0;
  const runtimeStats = {
    podStats: async () => {
      calls++;
      return await answer(machine);
    },
  };
  const memories = new PodMemories({ readings, runtimeStats, clock });
  return { machine, memories, calls: () => calls };
}

function stats(machine: TestMachine, uid: string, ageMs = 0, bytes: bigint | undefined = 7n): PodStats {
  const takenAt = BigInt(machine.clock.now() - ageMs) * 1_000_000n;
  const figures = { workingSetBytes: bytes, usageBytes: bytes, rssBytes: bytes };
  return { uid, cpu: undefined, memory: { takenAt, ...figures }, containers: [] };
}

describe("memory of pods", () => {
  it("comes from cgroups, and from the runtime for who has none", async () => {
    const { memories } = setup(async (machine) => [stats(machine, "a"), stats(machine, "b")]);
    const reading = await memories.of(pods, never);
    expect(reading).toMatchObject({ state: "read" });
    if (reading.state !== "read") return;
    expect(reading.value.get("a")).toEqual(uses(Gi));
    expect(reading.value.get("b")).toEqual(uses(7));
  });

  it("asks the runtime only for running pods, and once in ten seconds", async () => {
    const { machine, memories, calls } = setup(async (machine) => [stats(machine, "b")]);
    await memories.of([pods[0]!], never);
    await memories.of([pods[0]!, testPod("b", { phase: "Pending" })], never);
    expect(calls()).toBe(0);
    await memories.of(pods, never);
    await memories.of(pods, never);
    expect(calls()).toBe(1);
    await machine.clock.step(10_001);
    await memories.of(pods, never);
    expect(calls()).toBe(2);
  });

  it.each([
    ["has no figures of the pod", async () => []],
    ["has old figures", async (machine: TestMachine) => [stats(machine, "b", 30_001)]],
    ["has no figures of it", async (machine: TestMachine) => [{ ...stats(machine, "b"), memory: undefined }]],
    ["has no such call", async () => Promise.reject(new NodekeeperError("unsupported", "an older runtime"))],
  ])("leaves a pod out when the runtime %s", async (_, answer) => {
    const reading = await setup(answer).memories.of(pods, never);
    expect(reading.state === "read" && [...reading.value.keys()]).toEqual(["a"]);
  });

  it("comes from the runtime alone where there are no cgroups", async () => {
    const { machine, memories } = setup(async (machine) => [stats(machine, "a"), stats(machine, "b")]);
    machine.pods = undefined;
    const reading = await memories.of(pods, never);
    expect(reading.state === "read" && [...reading.value.keys()]).toEqual(["a", "b"]);
  });

  it("fails where neither answers, also when the runtime hangs", async () => {
    const { machine, memories } = setup(() => new Promise(() => {}));
    machine.pods = undefined;
    const reading = memories.of(pods, never);
    await machine.clock.step(2_000);
    expect((await reading).state).toBe("missing");
  });
});

describe("ranking", () => {
  const measured = (
    name: string,
    qosLevel: "shared_cores" | "reclaimed_cores",
    priority: number,
    usage?: number,
  ): MeasuredPod => ({
    ...testPod(name, { qosLevel, priority }),
    memory: uses(usage ?? 0, usage === undefined ? { usageBytes: undefined } : {}),
    nodeBytes: undefined,
  });
  const all = [
    measured("unknown", "reclaimed_cores", -9),
    measured("shared", "shared_cores", -5, 900),
    measured("dear", "reclaimed_cores", 5, 800),
    measured("small", "reclaimed_cores", 1, 10),
    measured("large", "reclaimed_cores", 1, 20),
    measured("equal", "reclaimed_cores", 1, 20),
  ];
  const names = (...ranking: Parameters<typeof rankVictims>[1]) =>
    rankVictims(all, ranking).map(({ pod }) => pod.name);

  it("goes by its metrics in turn, and leaves out who has no figure", () => {
    expect(names("qosLevel", "priority", "usage")).toEqual(["equal", "large", "small", "dear", "shared"]);
    expect(names("usage")).toEqual(["shared", "dear", "equal", "large", "small"]);
    expect(names("priority")).toEqual(["unknown", "shared", "equal", "large", "small", "dear"]);
    expect(names("nodeUsage")).toEqual([]);
  });

  it("knows every metric", () => {
    const pod = { ...measured("p", "shared_cores", 0, 5), nodeBytes: 5 };
    for (const metric of rankingMetrics) expect(rankVictims([pod], [metric])).toHaveLength(1);
  });
});

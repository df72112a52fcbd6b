import fc from "fast-check";
import { expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import { inTreeSource } from "./in-tree-plugin.ts";
import { type CpuSample, evaluateCpu, type SystemCpuSettings, systemCpuPressure } from "./system-cpu.ts";
import { never, TestMachine, testPod, topQuestion } from "./testing/parts.ts";

const { systemCpu: defaults } = defaultInTreeEvictionSettings;

function judge(looks: readonly CpuSample[], settings: Partial<SystemCpuSettings> = {}) {
  return evaluateCpu(looks, { ...defaults, ...settings });
}
const times = (count: number, usage: number, load: number) =>
  Array<CpuSample>(count).fill({ usage, load, at: 0 });

it.each([
  ["busy CPUs", times(8, 0.9, 0), {}, { scope: "usage", isHard: true, observed: 0.9, threshold: 0.8 }],
  ["too few looks", times(7, 1, 9), {}, undefined],
  ["waiting tasks", times(8, 0, 3), {}, { scope: "load", isHard: true, observed: 3, threshold: 2 }],
  ["load before usage", times(10, 1, 9), {}, { scope: "load", isHard: true, observed: 9, threshold: 2 }],
  ["soft pressure", times(10, 0.7, 0), {}, { scope: "usage", isHard: false, observed: 0.7, threshold: 0.6 }],
  [
    "hard usage before soft load",
    times(10, 0.9, 1.5),
    {},
    { scope: "usage", isHard: true, observed: 0.9, threshold: 0.8 },
  ],
  ["looks that are forgotten", [...times(10, 1, 0), ...times(3, 0, 0)], {}, undefined],
  [
    "bounds that are off",
    times(10, 1, 9),
    { loadUpper: 0, loadLower: 0, usageUpper: 0, usageLower: 0 },
    undefined,
  ],
] as [string, CpuSample[], Partial<SystemCpuSettings>, unknown][])("%s", (_, looks, settings, verdict) => {
  expect(judge(looks, settings)).toEqual(verdict);
});

it("a machine that gets busier never gets a milder verdict", () => {
  const rank = (verdict: ReturnType<typeof judge>) => (verdict ? (verdict.isHard ? 2 : 1) : 0);
  const look = fc.record({
    usage: fc.float({ min: 0, max: 1, noNaN: true }),
    load: fc.integer({ min: 0, max: 5 }),
    at: fc.constant(0),
  });
  fc.assert(
    fc.property(fc.array(look, { maxLength: 20 }), (looks) => {
      const busier = looks.map(({ usage, load, at }) => ({
        usage: Math.min(1, usage * 1.2),
        load: load + 1,
        at,
      }));
      expect(rank(judge(busier))).toBeGreaterThanOrEqual(rank(judge(looks)));
    }),
  );
});

const pods = [
  testPod("lent-idle", { qosLevel: "reclaimed_cores", priority: 1 }),
  testPod("lent-busy", { qosLevel: "reclaimed_cores", priority: 1 }),
  testPod("cheap", { priority: -5 }),
  testPod("own-cpus", { qosLevel: "dedicated_cores", priority: -9 }),
  testPod("unknown", { qosLevel: "reclaimed_cores", priority: -9 }),
];

function setup(share: number, changes: Partial<SystemCpuSettings> = {}) {
  const machine = new TestMachine();
  const cpus = 8;
  machine.cpu = { share, cpus };
  machine.loadAverage = 0.5;
  machine.activity = Object.fromEntries(
    ["lent-idle", "lent-busy", "cheap", "own-cpus"].map((name, at) => [name, { cpu: at, pids: 1 }]),
  );
  const plugin = inTreeSource(systemCpuPressure, machine.parts(), () => ({ ...defaults, ...changes }));
  const rounds = async (count: number) => {
    for (let round = 1; round < count; round++) {
      await plugin.thresholdMet(pods, never);
      await machine.clock.step(5_000);
    }
    return await plugin.thresholdMet(pods, never);
  };
  const top = async (topN = 9) => {
    const answer = await plugin.getTopEvictionPods(pods, topQuestion(plugin.name, "usage", topN), never);
    return answer.pods.map(({ name }) => name);
  };
  return { machine, plugin, rounds, top };
}

it("takes the busiest reclaimed pod after eight busy rounds, then waits for its cooldown", async () => {
  const { machine, rounds, top } = setup(0.95);
  expect((await rounds(7)).metType).toBe("none");
  await machine.clock.step(5_000);
  expect(await rounds(1)).toMatchObject({
    metType: "hard",
    scope: "usage",
    thresholdValue: 0.8,
    observedValue: 0.95,
    condition: { name: "SystemCPU", met: true },
  });
  // A pod with CPUs of its own gives none back, and one of which nothing is known is not judged.
  expect(await top()).toEqual(["lent-busy", "lent-idle", "cheap"]);
  expect(await top()).toEqual([]);
  await machine.clock.step(300_000);
  expect(await top(1)).toEqual(["lent-busy"]);
});

it("reports the last usage against its threshold while there is no pressure", async () => {
  const { rounds } = setup(0.25);
  expect(await rounds(9)).toMatchObject({
    ...{ metType: "none", scope: "usage", thresholdValue: 0.8, observedValue: 0.25, condition: null },
  });
});

it("shows soft pressure as a condition, and names no pod", async () => {
  const { rounds, top } = setup(0.7);
  expect(await rounds(10)).toMatchObject({ metType: "none", condition: { name: "SystemCPU", met: true } });
  expect(await top()).toEqual([]);
});

it("counts no look of rounds out of turn", async () => {
  const { machine, plugin } = setup(0.95);
  for (let round = 0; round < 20; round++) {
    expect((await plugin.thresholdMet(pods, never)).metType).toBe("none");
    await machine.clock.step(1_000);
  }
});

it("finds no pressure in a round without a sample, however many rounds were busy before", async () => {
  const { machine, rounds, top } = setup(0.95);
  expect((await rounds(9)).metType).toBe("hard");
  machine.cpu = undefined;
  await machine.clock.step(5_000);
  expect(await rounds(1)).toMatchObject({ metType: "none", observedValue: null, condition: null });
  // Nor does a round out of turn.
  await machine.clock.step(1_000);
  expect((await rounds(1)).metType).toBe("none");
  expect(await top()).toEqual([]);
  machine.cpu = { share: 0.95, cpus: 8 };
  await machine.clock.step(5_000);
  expect((await rounds(1)).metType).toBe("hard");
});

it("ignores samples from before a pause of rounds", async () => {
  const { machine, rounds } = setup(0.95);
  expect((await rounds(10)).metType).toBe("hard");
  await machine.clock.step(3_600_000);
  machine.cpu = { share: 0.1, cpus: 8 };
  expect(await rounds(1)).toMatchObject({ metType: "none", observedValue: 0.1 });
});

it("counts no more samples than a reload configures", async () => {
  const changes: Partial<SystemCpuSettings> = {};
  const { machine, rounds } = setup(0.95, changes);
  await rounds(3);
  machine.cpu = { share: 0.1, cpus: 8 };
  await machine.clock.step(5_000);
  await rounds(2);
  changes.looks = 2;
  await machine.clock.step(1_000);
  expect((await rounds(1)).metType).toBe("none");
});

it("finds no pressure on a machine without readings", async () => {
  const { machine, rounds, top } = setup(0.95);
  machine.cpu = undefined;
  machine.loadAverage = undefined;
  expect((await rounds(20)).metType).toBe("none");
  expect(await top()).toEqual([]);
});

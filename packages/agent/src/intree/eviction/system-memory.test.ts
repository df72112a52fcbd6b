import { describe, expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import type { EvictionSource, ObservedPod } from "../../eviction/index.ts";
import { inTreeSource } from "./in-tree-plugin.ts";
import {
  judgeFreeMemory,
  judgePressure,
  type SystemMemorySettings,
  systemMemoryPressure,
} from "./system-memory.ts";
import { Gi, Mi, never, stall, TestMachine, testPod, topQuestion, uses } from "./testing/parts.ts";

const { systemMemory: defaults } = defaultInTreeEvictionSettings;

const memory = (freeBytes: number, watermarkScaleFactor?: number) => ({
  totalBytes: 100 * Gi,
  freeBytes,
  availableBytes: 0,
  inactiveFileBytes: 0,
  watermarkScaleFactor,
});

describe("free memory", () => {
  it.each([
    ["below the watermark scale's share", Gi - 1, 100, 0, "reclaimed"],
    ["at it", Gi, 100, 0, "none"],
    ["below the minimum, which is higher", 2 * Gi - 1, 100, 2 * Gi, "reclaimed"],
    ["below the minimum, which is lower", Gi - 1, 100, Mi, "reclaimed"],
    ["none at all, with an unknown scale and no minimum", 0, undefined, 0, "none"],
    ["below the minimum, with an unknown scale", Mi - 1, undefined, Mi, "reclaimed"],
  ])("%s", (_, free, scale, freeMinimum, severity) => {
    expect(judgeFreeMemory(memory(free, scale), { freeMinimum })).toMatchObject({
      severity,
      observed: free,
      operator: "lessThan",
    });
  });
});

describe("pressure", () => {
  const pressed = { workload: 15, pods: [5, 5, 2] };

  it.each([
    ["pressed", pressed, true],
    ["a workload just below", { ...pressed, workload: 14.99 }, false],
    ["a pod at 1 % is not pressed", { ...pressed, pods: [10, 10, 1] }, false],
    ["two pods are too few", { ...pressed, pods: [50, 50] }, false],
    ["a mean below 4", { ...pressed, pods: [5, 5, 1.9] }, false],
    ["a mean that many idle pods pull down", { ...pressed, pods: [5, 5, 5, 0, 0] }, false],
    ["no pods", { ...pressed, pods: [] }, false],
    ["nothing read", undefined, false],
  ])("%s", (_, pressure, isPressed) => {
    expect(judgePressure(undefined, pressure, 7, defaults).since).toBe(isPressed ? 7 : undefined);
    // What does not hold any more ends the pressure, however long it lasted.
    expect(judgePressure(0, pressure, 60_000, defaults).severity).toBe(isPressed ? "all" : "none");
  });

  it.each([
    [14_999, "none"],
    [15_000, "reclaimed"],
    [44_999, "reclaimed"],
    [45_000, "all"],
  ])("after %i ms: %s", (now, severity) => {
    expect(judgePressure(0, pressed, now, defaults)).toMatchObject({
      severity,
      since: 0,
      threshold: 4,
      observed: 4,
    });
  });
});

describe("the plugin", () => {
  const scope = "SystemMemory";
  const pods = [
    testPod("lent-small", { qosLevel: "reclaimed_cores", priority: 5 }),
    testPod("lent-large", { qosLevel: "reclaimed_cores", priority: 5 }),
    testPod("lent-dear", { qosLevel: "reclaimed_cores", priority: 9 }),
    testPod("shared", { priority: -1 }),
    testPod("tiny", { qosLevel: "reclaimed_cores", priority: -5 }),
  ];
  const node = (id: number, freeBytes: number) => ({
    id,
    totalBytes: 50 * Gi,
    freeBytes,
    minBytes: 0,
    lowBytes: 0,
    inactiveFileBytes: 0,
  });

  function setup(changes: Partial<SystemMemorySettings> = {}) {
    const machine = new TestMachine();
    const settings = { ...defaults, freeMinimum: Gi, ...changes };
    machine.memory = memory(Gi / 2);
    machine.nodes = [node(0, Gi / 2)];
    machine.pods = {
      "lent-small": { memory: uses(Gi) },
      "lent-large": { memory: uses(2 * Gi) },
      "lent-dear": { memory: uses(9 * Gi) },
      shared: { memory: uses(20 * Gi) },
      tiny: { memory: uses(Mi) },
    };
    const plugin = inTreeSource(systemMemoryPressure, machine.parts(), () => settings);
    return { machine, plugin, settings };
  }

  const top = async (plugin: EvictionSource, offered: readonly ObservedPod[] = pods, topN = 1) => {
    const answer = await plugin.getTopEvictionPods(offered, topQuestion(plugin.name, scope, topN), never);
    return { ...answer, pods: answer.pods.map(({ name }) => name) };
  };

  it("reports free memory against its threshold while it is not short", async () => {
    const { machine, plugin } = setup();
    machine.memory = { ...machine.memory!, freeBytes: 3 * Gi };
    expect(await plugin.thresholdMet(pods, never)).toMatchObject({
      ...{ metType: "none", scope, thresholdValue: Gi, observedValue: 3 * Gi },
      ...{ operator: "lessThan", unit: "bytes", condition: null },
    });
  });

  it("takes the largest of the least dear reclaimed pods, quickly, with a condition", async () => {
    const { plugin } = setup();
    expect(await plugin.thresholdMet(pods, never)).toMatchObject({
      metType: "hard",
      scope,
      thresholdValue: Gi,
      observedValue: Gi / 2,
      operator: "lessThan",
      gracePeriodSeconds: 0,
      condition: { target: "node", name: "MemoryPressure", effects: ["NoSchedule"], met: true },
    });
    expect(await top(plugin)).toEqual({ pods: ["lent-large"], gracePeriodSeconds: 10 });
    expect(await plugin.getEvictPods(pods, never)).toEqual({ pods: [], condition: null });
  });

  it("selects no pod twice within the cooldown, and keeps its condition", async () => {
    const { machine, plugin } = setup();
    await plugin.thresholdMet(pods, never);
    await top(plugin);
    await machine.clock.step(34_999);
    expect((await plugin.thresholdMet(pods, never)).condition?.met).toBe(true);
    expect((await top(plugin)).pods).toEqual([]);
    await machine.clock.step(1);
    expect((await top(plugin)).pods).toEqual(["lent-large"]);
  });

  it("names the next pod at once where the first was not evicted, as where a budget forbade it", async () => {
    const machine = setup().machine;
    let onNode: ObservedPod[] = [...pods];
    const plugin = inTreeSource(systemMemoryPressure, machine.parts({ nodePods: () => onNode }), () => ({
      ...defaults,
      freeMinimum: Gi,
    }));
    await plugin.thresholdMet(pods, never);
    expect((await top(plugin)).pods).toEqual(["lent-large"]);
    const offered = pods.filter(({ pod }) => pod.name !== "lent-large");
    expect((await top(plugin, offered)).pods).toEqual(["lent-small"]);
    // That one is evicted.
    onNode = onNode.filter(({ pod }) => pod.name !== "lent-small");
    expect((await top(plugin, offered)).pods).toEqual([]);
  });

  it("starts no cooldown without a selected pod", async () => {
    const { machine, plugin } = setup();
    await plugin.thresholdMet(pods, never);
    expect((await top(plugin, [pods[3]!])).pods).toEqual([]);
    expect((await top(plugin)).pods).toEqual(["lent-large"]);
    expect(machine.podReads).toBeGreaterThan(0);
  });

  it("without a pod at risk keeps its condition, and is no threshold that is met each round", async () => {
    const { plugin } = setup();
    expect(await plugin.thresholdMet([pods[3]!], never)).toMatchObject({
      metType: "none",
      condition: { name: "MemoryPressure", met: true },
    });
  });

  it("while there is pressure, looks at the machine every nine seconds", async () => {
    const { machine, plugin } = setup();
    await plugin.thresholdMet(pods, never);
    machine.memory = memory(50 * Gi);
    await machine.clock.step(8_999);
    expect((await plugin.thresholdMet(pods, never)).metType).toBe("hard");
    await machine.clock.step(1);
    expect(await plugin.thresholdMet(pods, never)).toMatchObject({ metType: "none", condition: null });
    expect((await top(plugin)).pods).toEqual([]);
  });

  it("takes settings that changed meanwhile", async () => {
    const { machine, plugin, settings } = setup();
    settings.freeMinimum = 0;
    expect((await plugin.thresholdMet(pods, never)).metType).toBe("none");
    settings.freeMinimum = Gi;
    settings.ranking = ["usage"];
    await machine.clock.step(9_000);
    await plugin.thresholdMet(pods, never);
    expect((await top(plugin)).pods).toEqual(["lent-dear"]);
  });

  it("prefers those on the node that is short", async () => {
    const { machine, plugin } = setup();
    machine.nodes = [node(0, 10 * Gi), node(1, Gi)];
    const on = (zero: number, one: number) =>
      uses(zero + one, {
        nodeBytes: new Map([
          [0, zero],
          [1, one],
        ]),
      });
    machine.pods = {
      "lent-small": { memory: on(0, Gi) },
      "lent-large": { memory: on(30 * Gi, Mi) },
      // Runtimes do not report NUMA nodes: the total usage counts.
      "lent-dear": { memory: uses(3 * Gi) },
    };
    await plugin.thresholdMet(pods, never);
    expect((await top(plugin, pods, 5)).pods).toEqual(["lent-small", "lent-dear"]);
  });

  it.each([
    ["the machine's memory", (machine: TestMachine) => (machine.memory = undefined)],
    ["the nodes' memory", (machine: TestMachine) => (machine.nodes = undefined)],
    ["the pods' memory", (machine: TestMachine) => (machine.pods = undefined)],
    [
      "the pods' figures",
      (machine: TestMachine) =>
        (machine.pods = { "lent-large": { memory: { ...uses(0), usageBytes: undefined } } }),
    ],
    ["fresh figures", (machine: TestMachine) => (machine.ageMs = 31_000)],
  ])("evicts no pod without %s", async (_, spoil) => {
    const { machine, plugin } = setup();
    spoil(machine);
    await plugin.thresholdMet(pods, never);
    expect((await top(plugin)).pods).toEqual([]);
  });

  describe("under pressure", () => {
    const shared = ["a", "b", "c"].map((name) => testPod(name));
    const lent = testPod("lent", { qosLevel: "reclaimed_cores" });

    function pressed(changes: Partial<SystemMemorySettings> = {}) {
      const { machine, plugin } = setup({ freeMinimum: 0, ...changes });
      machine.burstable = stall(40);
      machine.pods = {
        lent: { memory: uses(Gi), memoryPressure: stall(0) },
        a: { memory: uses(Gi), memoryPressure: stall(10) },
        b: { memory: uses(3 * Gi), memoryPressure: stall(10) },
        c: { memory: uses(2 * Gi), memoryPressure: stall(10) },
      };
      return { machine, plugin };
    }

    it("selects reclaimed pods first, then any pod, with their own grace periods", async () => {
      const { machine, plugin } = pressed();
      const all = [lent, ...shared];
      expect((await plugin.thresholdMet(all, never)).metType).toBe("none");
      await machine.clock.step(15_000);
      expect(await plugin.thresholdMet(all, never)).toMatchObject({
        metType: "hard",
        thresholdValue: 4,
        observedValue: 10,
        operator: "greaterThan",
      });
      expect((await top(plugin, shared)).pods).toEqual([]);
      expect(await top(plugin, all)).toEqual({ pods: ["lent"], gracePeriodSeconds: 10 });
      await machine.clock.step(35_000);
      await plugin.thresholdMet(shared, never);
      expect(await top(plugin, shared)).toEqual({ pods: ["b"], gracePeriodSeconds: null });
    });

    it("counts pods that are no candidates", async () => {
      const { machine } = pressed();
      const parts = machine.parts({ nodePods: () => shared });
      const plugin = inTreeSource(systemMemoryPressure, parts, () => defaults);
      await plugin.thresholdMet([lent], never);
      await machine.clock.step(15_000);
      expect((await plugin.thresholdMet([lent], never)).metType).toBe("hard");
    });

    it("looks at the workload's cgroup that is configured", async () => {
      const { machine, plugin } = pressed({ workloadCgroup: "/work" });
      machine.cgroups = { "/work": stall(3) };
      await plugin.thresholdMet(shared, never);
      await machine.clock.step(15_000);
      expect((await plugin.thresholdMet(shared, never)).metType).toBe("none");
      machine.cgroups = { "/work": stall(50) };
      await machine.clock.step(9_000);
      await plugin.thresholdMet(shared, never);
      await machine.clock.step(15_000);
      expect((await plugin.thresholdMet([...shared, lent], never)).metType).toBe("hard");
    });

    it("starts again after a sample without readings", async () => {
      const { machine, plugin } = pressed();
      await plugin.thresholdMet(shared, never);
      await machine.clock.step(15_000);
      machine.burstable = undefined;
      expect((await plugin.thresholdMet(shared, never)).metType).toBe("none");
      machine.burstable = stall(40);
      await machine.clock.step(10_000);
      expect((await plugin.thresholdMet(shared, never)).metType).toBe("none");
    });
  });
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import type { NodeMemory } from "../../host/index.ts";
import { inTreeSource } from "./in-tree-plugin.ts";
import { judgeNode, type NumaMemorySettings, numaMemoryPressure, watermarksOf } from "./numa-memory.ts";
import { Gi, Mi, never, TestMachine, testPod, topQuestion, uses } from "./testing/parts.ts";

const { numaMemory: defaults } = defaultInTreeEvictionSettings;

function node(id: number, freeBytes: number, more: Partial<NodeMemory> = {}): NodeMemory {
  return {
    id,
    totalBytes: 128 * Gi,
    freeBytes,
    minBytes: 64 * Mi,
    lowBytes: 128 * Mi,
    inactiveFileBytes: 0,
    ...more,
  };
}

describe("watermarks", () => {
  it.each([
    ["with enough cache", {}, 4 * Gi, 64 * Mi + Gi, 128 * Mi + 256 * Mi, false],
    ["with too little cache", {}, 4 * Gi - 1, 64 * Mi + Gi, 4 * Gi, true],
    ["of a kernel that keeps much free", { lowBytes: 8 * Gi }, 4 * Gi, 64 * Mi + Gi, 9 * Gi + 256 * Mi, true],
    [
      "of a small machine: a tenth at most for each",
      { totalBytes: 4 * Gi },
      0,
      64 * Mi + 0.4 * Gi,
      128 * Mi + 256 * Mi + 0.4 * Gi,
      true,
    ],
  ])("%s", (_, more, inactiveFileBytes, minBytes, lowBytes, isCacheShort) => {
    expect(watermarksOf(node(0, 0, { ...more, inactiveFileBytes }), defaults)).toMatchObject({
      minBytes,
      lowBytes,
      isCacheShort,
    });
  });
});

describe("a node", () => {
  const watermarks = { minBytes: Gi, lowBytes: 4 * Gi, gapBytes: Gi, isCacheShort: true };
  const judge = (before: number, freeBytes: number, more = watermarks) =>
    judgeNode(before, freeBytes, more, defaults);

  it.each([
    ["above its watermarks", 0, 4 * Gi, { count: 0, severity: "none" }],
    ["below low for the first time", 0, 4 * Gi - 1, { count: 1, severity: "none" }],
    ["below low for the sixth time", 5, 4 * Gi - 1, { count: 6, severity: "none" }],
    ["below low for the seventh time", 6, 4 * Gi - 1, { count: 7, severity: "reclaimed" }],
    ["below low for the eleventh time", 10, 4 * Gi - 1, { count: 11, severity: "reclaimed" }],
    ["below low for the twelfth time", 11, 4 * Gi - 1, { count: 12, severity: "all" }],
    ["below low ever since", 12, 4 * Gi - 1, { count: 12, severity: "all" }],
    ["far below low counts once at first", 1, 2 * Gi, { count: 2, severity: "none" }],
    ["far below low counts twice later", 2, 2 * Gi, { count: 4, severity: "none" }],
    ["by more than a gap counts twice", 2, 3 * Gi - 1, { count: 4, severity: "none" }],
    ["a little below counts once", 2, 3 * Gi, { count: 3, severity: "none" }],
    ["in danger at once", 0, Gi - 1, { count: 11, severity: "reclaimed" }],
    ["in danger again, with nothing to give back", 11, Gi - 1, { count: 12, severity: "all" }],
    ["recovered", 3, 4 * Gi, { count: 2, severity: "none" }],
    ["recovered from the top", 12, 4 * Gi, { count: 6, severity: "none" }],
  ] as const)("%s", (_, before, free, verdict) => expect(judge(before, free)).toEqual(verdict));

  it("in danger with plenty of page cache never takes more than reclaimed pods", () => {
    let count = 0;
    for (let look = 0; look < 50; look++) {
      const verdict = judge(count, Gi / 2, { ...watermarks, isCacheShort: false });
      expect(verdict.severity).toBe("reclaimed");
      ({ count } = verdict);
    }
  });

  it("counts no more dangerous samples than there are counts until all pods are candidates", () => {
    const settings = { ...defaults, reclaimedCounts: 5, allCounts: 3, dangerCounts: 10 };
    // All pods are candidates from count 6 on, and a first dangerous sample counts 3 less than that.
    expect(judgeNode(0, 0, watermarks, settings)).toEqual({ count: 3, severity: "reclaimed" });
  });

  it("with plenty of page cache never takes more than reclaimed pods, whatever the settings", () => {
    const counts = fc.integer({ min: 0, max: 12 });
    const looks = fc.array(fc.integer({ min: 0, max: 8 }), { maxLength: 60 });
    fc.assert(
      fc.property(looks, counts, counts, (looks, dangerCounts, reclaimedCounts) => {
        const settings = { ...defaults, dangerCounts, reclaimedCounts };
        let count = 0;
        for (const halves of looks) {
          const ample = { ...watermarks, isCacheShort: false };
          const verdict = judgeNode(count, (halves * Gi) / 2, ample, settings);
          expect(verdict.severity).not.toBe("all");
          ({ count } = verdict);
        }
      }),
    );
  });

  it("is not pressed when all is free, whatever happened before, and counts stay in their bounds", () => {
    const looks = fc.array(fc.integer({ min: 0, max: 128 }), { maxLength: 60 });
    fc.assert(
      fc.property(looks, fc.boolean(), (looks, isCacheShort) => {
        let count = 0;
        for (const gibibytes of looks) {
          const verdict = judge(count, gibibytes * Gi, { ...watermarks, isCacheShort });
          expect(verdict.count).toBeGreaterThanOrEqual(0);
          expect(verdict.count).toBeLessThanOrEqual(defaults.allCounts);
          if (gibibytes >= 4) expect(verdict.severity).toBe("none");
          ({ count } = verdict);
        }
      }),
    );
  });
});

describe("the plugin", () => {
  const scope = "NumaMemory";
  const pods = [
    testPod("on-zero", { qosLevel: "reclaimed_cores" }),
    testPod("on-one", { qosLevel: "reclaimed_cores" }),
    testPod("shared-on-one", { priority: 1 }),
    testPod("unknown", { qosLevel: "reclaimed_cores", priority: -9 }),
  ];
  const on = (zero: number, one: number) =>
    uses(zero + one, {
      nodeBytes: new Map([
        [0, zero],
        [1, one],
      ]),
    });

  function setup(changes: Partial<NumaMemorySettings> = {}) {
    const machine = new TestMachine();
    machine.nodes = [node(0, 60 * Gi), node(1, Gi / 2)];
    machine.pods = {
      "on-zero": { memory: on(40 * Gi, 100 * Mi) },
      "on-one": { memory: on(0, Gi) },
      "shared-on-one": { memory: on(0, 50 * Gi) },
      // This one has no usage by NUMA node.
      unknown: { memory: uses(20 * Gi) },
    };
    const plugin = inTreeSource(numaMemoryPressure, machine.parts(), () => ({ ...defaults, ...changes }));
    const look = async () => {
      await machine.clock.step(5_000);
      return await plugin.thresholdMet(pods, never);
    };
    const top = async (offered = pods, topN = 1) => {
      const answer = await plugin.getTopEvictionPods(offered, topQuestion(plugin.name, scope, topN), never);
      return { ...answer, pods: answer.pods.map(({ name }) => name) };
    };
    return { machine, plugin, look, top };
  }

  it("on a node full of page cache reports nothing without reclaimed pods, however long", async () => {
    const { machine, plugin } = setup();
    // An ordinary node: the kernel keeps little free, and could give most of it back.
    machine.nodes = [{ ...node(0, Gi / 2), inactiveFileBytes: 30 * Gi }];
    const ordinary = pods.filter(({ pod }) => pod.qosLevel !== "reclaimed_cores");
    for (let round = 0; round < 100; round++) {
      await machine.clock.step(5_000);
      expect((await plugin.thresholdMet(ordinary, never)).metType).toBe("none");
    }
    expect((await plugin.thresholdMet(pods, never)).metType).toBe("hard");
  });

  it("reports the node with the least memory above its watermark while there is no pressure", async () => {
    const { machine, look } = setup();
    machine.nodes = [node(0, 60 * Gi), node(1, 20 * Gi)];
    expect(await look()).toMatchObject({
      ...{ metType: "none", scope, thresholdValue: 4 * Gi, observedValue: 20 * Gi, condition: null },
    });
  });

  it("selects reclaimed pods of the node under pressure immediately, and any pod one sample later", async () => {
    const { look, top } = setup();
    expect(await look()).toMatchObject({
      metType: "hard",
      scope,
      thresholdValue: 4 * Gi,
      observedValue: Gi / 2,
      operator: "lessThan",
      condition: null,
    });
    expect(await top()).toEqual({ pods: ["on-one"], gracePeriodSeconds: 10 });
    expect((await top([pods[2]!])).pods).toEqual([]);
    await look();
    expect(await top(pods, 5)).toEqual({ pods: ["on-one", "shared-on-one"], gracePeriodSeconds: null });
  });

  it("leaves alone who uses less than a thousandth of the node", async () => {
    const { look, top } = setup();
    await look();
    expect((await top([pods[0]!])).pods).toEqual([]);
  });

  it("between rounds finds a node in danger; where the machine stands still it looks at nodes once a second", async () => {
    const { machine, plugin } = setup();
    let looks = 0;
    let freeBytes = 64 * Gi;
    const crossed = () =>
      plugin.crossed!({
        at: 0,
        memory: () => ({
          totalBytes: 128 * Gi,
          freeBytes,
          availableBytes: undefined,
          inactiveFileBytes: undefined,
          watermarkScaleFactor: undefined,
        }),
        nodeMemory: () => {
          looks++;
          return machine.nodes;
        },
        pressure: () => undefined,
        pids: () => undefined,
      });
    expect(crossed()).toEqual(["free memory of NUMA node 1"]);
    machine.nodes = [node(0, 60 * Gi), node(1, 60 * Gi)];
    await machine.clock.step(250);
    expect(crossed()).toEqual(["free memory of NUMA node 1"]);
    expect(looks).toBe(1);
    freeBytes -= Gi;
    expect(crossed()).toEqual([]);
    machine.nodes = [node(0, Gi / 2), node(1, 60 * Gi)];
    await machine.clock.step(1_000);
    expect(crossed()).toEqual(["free memory of NUMA node 0"]);
    expect(looks).toBe(3);
  });

  it("in rounds out of turn finds danger at once, and counts nothing", async () => {
    const { machine, plugin, look } = setup();
    machine.nodes = [node(0, 60 * Gi)];
    await look();
    machine.nodes = [node(0, 3.5 * Gi)];
    for (let extra = 0; extra < 20; extra++) {
      await machine.clock.step(1_00);
      expect((await plugin.thresholdMet(pods, never)).metType).toBe("none");
    }
    machine.nodes = [node(0, Gi / 2)];
    await machine.clock.step(100);
    // All pods are at risk from the next regular look on.
    const shared = [pods[2]!];
    for (let extra = 0; extra < 10; extra++) {
      expect((await plugin.thresholdMet(pods, never)).metType).toBe("hard");
      expect((await plugin.thresholdMet(shared, never)).metType).toBe("none");
      await machine.clock.step(100);
    }
    await machine.clock.step(5_000);
    expect((await plugin.thresholdMet(shared, never)).metType).toBe("hard");
  });

  it("in a round out of turn reports no pressure of a node that has recovered, and keeps its count", async () => {
    const { machine, plugin, look } = setup();
    const shared = [pods[2]!];
    const early = async (freeBytes: number, offered = pods) => {
      await machine.clock.step(100);
      machine.nodes = [node(0, freeBytes)];
      return await plugin.thresholdMet(offered, never);
    };
    machine.nodes = [node(0, Gi / 2)];
    expect((await look()).metType).toBe("hard");
    expect(await early(60 * Gi)).toMatchObject({ metType: "none", observedValue: 60 * Gi });
    // Danger again, which only a regular round counts.
    expect((await early(Gi / 2)).metType).toBe("hard");
    expect((await early(Gi / 2, shared)).metType).toBe("none");
    expect((await early(3.5 * Gi)).metType).toBe("hard");
    machine.nodes = [node(0, Gi / 2)];
    await look();
    expect((await early(Gi / 2, shared)).metType).toBe("hard");
  });

  it("counts one look once, however often it is handed out", async () => {
    const { machine, plugin, look } = setup();
    machine.nodes = [node(0, 3.5 * Gi)];
    for (let call = 0; call < 20; call++) {
      expect((await plugin.thresholdMet(pods, never)).metType).toBe("none");
    }
    for (let call = 0; call < 5; call++) expect((await look()).metType).toBe("none");
    expect((await look()).metType).toBe("hard");
  });

  it("selects pods of the next node if the worst has no candidates", async () => {
    const { machine, look, top } = setup();
    machine.nodes = [node(0, Gi / 2), node(1, Gi / 4)];
    await look();
    expect((await top()).pods).toEqual(["on-one"]);
    expect((await top([pods[0]!, pods[3]!])).pods).toEqual(["on-zero"]);
  });

  it.each([
    ["the nodes' memory", (machine: TestMachine) => (machine.nodes = undefined)],
    ["the pods' memory", (machine: TestMachine) => (machine.pods = undefined)],
    ["fresh figures of pods", (machine: TestMachine) => (machine.ageMs = 31_000)],
  ])("evicts no pod without %s", async (_, spoil) => {
    const { machine, look, top } = setup();
    await look();
    spoil(machine);
    await look();
    expect((await top()).pods).toEqual([]);
    expect(await machine.registry.metrics()).toMatch(/nodekeeper_intree_missing_readings_total\{.*\} [1-9]/);
  });

  it("keeps its counts over a look that failed", async () => {
    const { machine, look } = setup();
    const { nodes } = machine;
    machine.nodes = [node(0, 3.5 * Gi)];
    for (let call = 0; call < 6; call++) await look();
    machine.nodes = undefined;
    expect((await look()).metType).toBe("none");
    machine.nodes = [node(0, 3.5 * Gi)];
    expect((await look()).metType).toBe("hard");
    machine.nodes = nodes;
  });
});

import { describe, expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import { inTreeSource } from "./in-tree-plugin.ts";
import { type RootfsOveruseSettings, rootfsOveruse } from "./overuse.ts";
import { type RootfsPressureSettings, rootfsPressure, rootfsShortage } from "./rootfs-pressure.ts";
import { Gi, Mi, never, TestMachine, testPod, topQuestion } from "./testing/parts.ts";

const { rootfsPressure: defaults, rootfsOveruse: overuse } = defaultInTreeEvictionSettings;

const calm = { sizeBytes: 100 * Gi, availableBytes: 50 * Gi, inodes: 1_000, inodesFree: 500 };
const pods = [
  testPod("small", { qosLevel: "reclaimed_cores" }),
  testPod("lent", { qosLevel: "reclaimed_cores" }),
  testPod("large"),
  testPod("unknown", { qosLevel: "reclaimed_cores" }),
  testPod("empty", { qosLevel: "reclaimed_cores" }),
];
const disks = {
  small: { bytes: Mi, inodes: 900 },
  lent: { bytes: 2 * Gi, inodes: 20 },
  large: { bytes: 9 * Gi, inodes: 5 },
  unknown: { bytes: undefined, inodes: undefined },
  empty: { bytes: 0, inodes: 0 },
};

it.each([
  ["space", { availableBytes: 9 * Gi }, {}, "space"],
  ["space at the threshold", { availableBytes: 10 * Gi }, {}, undefined],
  ["inodes", { inodesFree: 49 }, {}, "inodes"],
  ["space before inodes", { availableBytes: Gi, inodesFree: 0 }, {}, "space"],
  ["inodes where space is not looked at", { availableBytes: 0, inodesFree: 0 }, { minimumFree: 0 }, "inodes"],
  ["a file system that creates inodes as needed", { inodes: 0, inodesFree: 0 }, {}, undefined],
  ["a small file system", { sizeBytes: 9 * Gi, availableBytes: 0 }, {}, undefined],
  ["enough", {}, {}, undefined],
] as [string, Partial<typeof calm>, Partial<RootfsPressureSettings>, string | undefined][])(
  "a shortage: %s",
  (_, state, settings, of) => {
    expect(rootfsShortage({ ...calm, ...state }, { ...defaults, ...settings })?.of).toBe(of);
  },
);

describe("rootfs pressure", () => {
  function setup(state: Partial<typeof calm>, changes: Partial<RootfsPressureSettings> = {}) {
    const machine = new TestMachine();
    machine.filesystem = { ...calm, ...state };
    machine.disks = disks;
    const plugin = inTreeSource(rootfsPressure, machine.parts(), () => ({ ...defaults, ...changes }));
    const top = async (topN = 9) => {
      const answer = await plugin.getTopEvictionPods(
        pods,
        topQuestion(plugin.name, "SystemRootfs", topN),
        never,
      );
      return answer.pods.map(({ name }) => name);
    };
    return { machine, plugin, top };
  }

  it("takes reclaimed pods first, then those that have most, and taints the node", async () => {
    const { plugin, top } = setup({ availableBytes: Gi });
    expect(await plugin.thresholdMet(pods, never)).toMatchObject({
      metType: "hard",
      scope: "SystemRootfs",
      thresholdValue: 10 * Gi,
      observedValue: Gi,
      operator: "lessThan",
      condition: { name: "SystemRootfs", effects: ["NoSchedule"], met: true },
    });
    expect(await top()).toEqual(["lent", "small", "large"]);
    expect(await top(1)).toEqual(["lent"]);
  });

  it("reports available space against its threshold while it is not short", async () => {
    const { plugin } = setup({ availableBytes: 20 * Gi });
    expect(await plugin.thresholdMet(pods, never)).toMatchObject({
      ...{ metType: "none", scope: "SystemRootfs", thresholdValue: 10 * Gi, observedValue: 20 * Gi },
      condition: null,
    });
  });

  it("ranks by inodes where these are short, and leaves pods with few alone", async () => {
    const { plugin, top } = setup({ inodesFree: 1 }, { podMinimumInodes: 10 });
    await plugin.thresholdMet(pods, never);
    expect(await top()).toEqual(["small", "lent"]);
  });

  it.each([
    ["the file system", (machine: TestMachine) => (machine.filesystem = undefined)],
    ["the pods' disks", (machine: TestMachine) => (machine.disks = undefined)],
  ])("evicts no pod without %s", async (_, spoil) => {
    const { machine, plugin, top } = setup({ availableBytes: 0 });
    spoil(machine);
    await plugin.thresholdMet(pods, never);
    expect(await top()).toEqual([]);
    expect(await machine.registry.metrics()).toMatch(/nodekeeper_intree_missing_readings_total\{.*\} 1/);
  });

  it("is not met where the path is not known", async () => {
    const { machine } = setup({ availableBytes: 0 });
    const rootfsPath = () => Promise.reject(new Error("the runtime is unreachable"));
    const plugin = inTreeSource(rootfsPressure, machine.parts({ rootfsPath }), () => defaults);
    expect((await plugin.thresholdMet(pods, never)).metType).toBe("none");
  });
});

describe("rootfs overuse", () => {
  async function namedBy(changes: Partial<RootfsOveruseSettings>, machine = new TestMachine()) {
    machine.disks ??= disks;
    const settings = { ...overuse, mostPods: 9, ...changes };
    const plugin = inTreeSource(rootfsOveruse, machine.parts(), () => settings);
    return (await plugin.getEvictPods(pods, never)).pods;
  }
  const names = (named: Awaited<ReturnType<typeof namedBy>>) => named.map(({ pod }) => pod.name);

  it.each([
    ["no threshold", {}, []],
    ["shared pods above theirs", { sharedThreshold: Gi }, ["large"]],
    ["reclaimed pods above theirs", { reclaimedThreshold: 1 }, ["lent", "small"]],
    ["both, the largest first", { sharedThreshold: Gi, reclaimedThreshold: Gi }, ["large", "lent"]],
    ["so many in a round", { sharedThreshold: 1, reclaimedThreshold: 1, mostPods: 1 }, ["large"]],
    ["shared pods of other namespaces", { sharedThreshold: 1, sharedNamespaces: ["jobs"] }, []],
    ["shared pods of a namespace", { sharedThreshold: 1, sharedNamespaces: ["default"] }, ["large"]],
    ["none at the threshold", { sharedThreshold: 9 * Gi }, []],
  ])("names %s", async (_, settings, expected) => expect(names(await namedBy(settings))).toEqual(expected));

  it("names as soft, with the figures", async () => {
    expect(await namedBy({ sharedThreshold: Gi, gracePeriod: 20_000 })).toMatchObject([
      {
        reason: "writable layers use 9663676416 bytes > threshold 1073741824",
        force: false,
        gracePeriodSeconds: 20,
      },
    ]);
  });
});

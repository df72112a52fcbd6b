import { Registry, silentLogger } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import { inTreeEvictionSources } from "./in-tree-sources.ts";
import { createInTreeEvictionMetrics } from "./missing-readings.ts";
import { fixtureReadings, Gi, never, testPod, topQuestion } from "./testing/parts.ts";

const patterns = ["*", "rss-overuse-eviction-plugin"];

/** The plugins on real readings of a made-up machine. */
function pluginsOn(machine: string, settings = defaultInTreeEvictionSettings) {
  const { clock, ...readings } = fixtureReadings(machine);
  const parts = {
    ...readings,
    rootfsPath: async () => "/",
    allocatable: () => ({ state: "missing", at: 0, message: "" }) as const,
    roundPeriodMs: () => 5_000,
    clock,
    log: silentLogger,
    metrics: createInTreeEvictionMetrics(new Registry()),
  };
  const sources = inTreeEvictionSources(patterns, parts, () => settings);
  const plugin = (name: string) => sources.find((source) => source.name.startsWith(name))!;
  return { clock, plugin };
}

describe("one socket, cgroup v2", () => {
  const burstable = testPod("2f0c1b9e-93c4-4d8a-b0a5-6c1f6d0e7b02", {
    requests: [{ memory: "8Gi" }, { memory: "6Gi" }],
  });
  const bestEffort = testPod("c3d9e6aa-5b1f-4b3e-8f0a-17a7f2f4dc03", { qosLevel: "reclaimed_cores" });
  const guaranteed = testPod("8a7f4c52-0d0e-4f57-9d9f-0c3d5b1c7a01", { requests: [{ memory: "8Gi" }] });
  const pods = [burstable, bestEffort, guaranteed];

  it("rss-overuse names the pod whose RSS of 15Gi is above its requests of 14Gi", async () => {
    const { plugin } = pluginsOn("one-socket-v2");
    const { pods: named } = await plugin("rss").getEvictPods(pods, never);
    expect(named.map(({ pod }) => pod.uid)).toEqual([burstable.pod.uid]);
  });

  it("system-memory sees the workload stand still", async () => {
    const systemMemory = { ...defaultInTreeEvictionSettings.systemMemory, pressedPods: 1 };
    const { clock, plugin } = pluginsOn("one-socket-v2", { ...defaultInTreeEvictionSettings, systemMemory });
    await plugin("system").thresholdMet(pods, never);
    await clock.step(15_000);
    expect(await plugin("system").thresholdMet(pods, never)).toMatchObject({
      metType: "hard",
      // The burstable pod's 22.5 and the guaranteed one's 0.
      observedValue: 11.25,
    });
    const top = await plugin("system").getTopEvictionPods(pods, topQuestion("", "SystemMemory"), never);
    expect(top.pods).toMatchObject([{ uid: bestEffort.pod.uid }]);
  });

  it("numa-memory reports nothing: enough is free", async () => {
    expect((await pluginsOn("one-socket-v2").plugin("numa").thresholdMet(pods, never)).metType).toBe("none");
  });
});

describe("two sockets, cgroup v1", () => {
  const onOne = testPod("51e6b2d0-9c1a-4c1e-a8fd-2f6f8a1c0d01", { priority: 9 });
  const onZero = testPod("b0a4f7c3-7a1e-4f0b-9a44-5d1de1f3ab02", { priority: 9 });
  const pods = [onOne, onZero];

  it("numa-memory finds the pod on the node that is short", async () => {
    const { clock, plugin } = pluginsOn("two-sockets-v1");
    // Without reclaimed pods: below the min watermark and without page cache, all pods are candidates at the second sample.
    expect((await plugin("numa").thresholdMet(pods, never)).metType).toBe("none");
    await clock.step(5_000);
    expect(await plugin("numa").thresholdMet(pods, never)).toMatchObject({
      metType: "hard",
      observedValue: 0.75 * Gi,
    });
    const top = await plugin("numa").getTopEvictionPods(pods, topQuestion("", ""), never);
    expect(top).toMatchObject({ pods: [{ uid: onZero.pod.uid }], gracePeriodSeconds: null });
  });

  it("system-memory finds too little free, taints, and requests no pod where none is reclaimed", async () => {
    const { clock, plugin } = pluginsOn("two-sockets-v1");
    // 4 GiB are free, 1.5 % of 251.75 GiB is not.
    expect((await plugin("system").thresholdMet(pods, never)).metType).toBe("none");
    await clock.step(0);
    const systemMemory = { ...defaultInTreeEvictionSettings.systemMemory, freeMinimum: 5 * Gi };
    const strict = pluginsOn("two-sockets-v1", { ...defaultInTreeEvictionSettings, systemMemory });
    expect(await strict.plugin("system").thresholdMet(pods, never)).toMatchObject({
      metType: "none",
      condition: { name: "MemoryPressure", met: true },
    });
    const top = await strict.plugin("system").getTopEvictionPods(pods, topQuestion("", ""), never);
    expect(top.pods).toEqual([]);
  });
});

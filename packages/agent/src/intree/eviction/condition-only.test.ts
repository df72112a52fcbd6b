import { expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import type { EvictionSource, ObservedPod } from "../../eviction/index.ts";
import { someRounds } from "../../eviction/testing/pressures.ts";
import { inTreeSource, type PressureRule } from "./in-tree-plugin.ts";
import { systemMemoryPressure } from "./system-memory.ts";
import { Gi, never, TestMachine, testPod } from "./testing/parts.ts";

const { systemMemory: settings } = defaultInTreeEvictionSettings;

/** Asks a plugin as a round does, and returns the conditions that a round with these answers sets. */
async function conditionsAfter(plugin: EvictionSource, pods: readonly ObservedPod[]) {
  const { condition } = await plugin.getEvictPods(pods, never);
  const threshold = await plugin.thresholdMet(pods, never);
  const { conditions } = someRounds().play({
    [plugin.name]: { ...(condition ? { podsCondition: condition } : {}), threshold },
  });
  return conditions.map(({ name, why }) => ({ name, why }));
}

function shortOfMemory() {
  const machine = new TestMachine();
  const free = { totalBytes: 100 * Gi, freeBytes: Gi, availableBytes: 0, inactiveFileBytes: 0 };
  machine.memory = { ...free, watermarkScaleFactor: undefined };
  return inTreeSource(systemMemoryPressure, machine.parts(), () => ({ ...settings, freeMinimum: 2 * Gi }));
}

const shared = testPod("shared");
const reclaimed = testPod("reclaimed", { qosLevel: "reclaimed_cores" });

it.each([
  ["no pod is a candidate", [shared]],
  ["a pod is one", [shared, reclaimed]],
])("memory pressure is a condition of the Node when %s", async (_, pods) => {
  expect(await conditionsAfter(shortOfMemory(), pods)).toEqual([
    { name: "MemoryPressure", why: expect.stringContaining("SystemMemory") },
  ]);
});

it("a round observes once, and an observation is not used in the next one", async () => {
  let observed = 0;
  const rule: PressureRule<never> = {
    observe: async () => (++observed === 1 ? { condition: "Hot" } : {}),
    victims: async () => undefined,
  };
  const plugin = inTreeSource({ name: "p", pressure: () => rule }, new TestMachine().parts(), () => ({}));
  expect(await conditionsAfter(plugin, [])).toMatchObject([{ name: "Hot" }]);
  expect(observed).toBe(1);
  // GetEvictPods of this round has failed.
  expect(await plugin.thresholdMet([], never)).toMatchObject({ condition: null });
  expect(observed).toBe(2);
});

it("an observation that is late is not used in the next round", async () => {
  const late = new AbortController();
  const rule: PressureRule<never> = {
    async observe(_pods, signal) {
      if (signal === late.signal) late.abort(new Error("too late"));
      return signal === late.signal ? { condition: "Hot" } : {};
    },
    victims: async () => undefined,
  };
  const plugin = inTreeSource({ name: "p", pressure: () => rule }, new TestMachine().parts(), () => ({}));
  await expect(plugin.getEvictPods([], late.signal)).rejects.toThrow("too late");
  expect(await plugin.thresholdMet([], never)).toMatchObject({ condition: null });
});

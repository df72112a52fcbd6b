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

it.each([
  ["is late", (late: AbortController) => late.abort(new Error("no observation"))],
  [
    "fails",
    () => {
      throw new Error("no observation");
    },
  ],
])("an observation that %s is not repeated in its round, and not used in the next one", async (_, end) => {
  let observed = 0;
  const first = new AbortController();
  const rule: PressureRule<never> = {
    async observe() {
      if (++observed === 1) end(first);
      return { condition: observed === 1 ? "Hot" : "Cold" };
    },
    victims: async () => undefined,
  };
  const plugin = inTreeSource({ name: "p", pressure: () => rule }, new TestMachine().parts(), () => ({}));
  await expect(plugin.getEvictPods([], first.signal)).rejects.toThrow("no observation");
  await expect(plugin.thresholdMet([], never)).rejects.toThrow("no observation");
  expect(observed).toBe(1);
  expect(await conditionsAfter(plugin, [])).toMatchObject([{ name: "Cold" }]);
});

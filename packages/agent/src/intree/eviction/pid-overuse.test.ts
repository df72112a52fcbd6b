import { expect, it } from "vitest";
import { inTreeSource } from "./in-tree-plugin.ts";
import { pidOveruse } from "./overuse.ts";
import { never, TestMachine, testPod } from "./testing/parts.ts";

const pods = ["few", "many", "most", "unknown"].map((name) => testPod(name));

async function namedAbove(threshold: number, machine = new TestMachine()) {
  machine.activity ??= {
    few: { cpu: 0, pids: 10 },
    many: { cpu: 0, pids: 1_001 },
    most: { cpu: 0, pids: 5_000 },
    unknown: { cpu: 0, pids: undefined },
  };
  const plugin = inTreeSource(pidOveruse, machine.parts(), () => ({ threshold, gracePeriod: 0 }));
  return (await plugin.getEvictPods(pods, never)).pods;
}

it.each([
  [0, []],
  [10, ["most", "many"]],
  [1_000, ["most", "many"]],
  [1_001, ["most"]],
  [5_000, []],
])("above %i processes names %j", async (threshold, names) => {
  expect((await namedAbove(threshold)).map(({ pod }) => pod.name)).toEqual(names);
});

it("names as forced, with the figures", async () => {
  expect((await namedAbove(1_000))[0]).toEqual({
    pod: pods[2]!.pod,
    reason: "5000 processes and threads > threshold 1000",
    force: true,
    gracePeriodSeconds: null,
  });
});

it("selects no pod on a machine without readings, and counts that", async () => {
  const machine = new TestMachine();
  machine.activity = {};
  expect(await namedAbove(1, machine)).toEqual([]);
  const silent = new TestMachine();
  const plugin = inTreeSource(pidOveruse, silent.parts(), () => ({ threshold: 1, gracePeriod: 0 }));
  expect((await plugin.getEvictPods(pods, never)).pods).toEqual([]);
  expect(await silent.registry.metrics()).toContain('reading="podPids"} 1');
});

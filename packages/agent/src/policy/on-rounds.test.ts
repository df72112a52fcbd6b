import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type EncodablePod, observeJson } from "../eviction/index.ts";
import { TestAgent } from "../eviction/testing/manager-setup.ts";
import { FakePods, jsonPod } from "../eviction/testing/round-parts.ts";
import { Mi, policyOf, TestNode } from "./testing/policies.ts";

// Policies in whole rounds: what they return is subject to the same rules as all plugins' answers.
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkp-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function podsWith(priorities: Record<string, number>): FakePods {
  const pods = new FakePods();
  for (const [name, priority] of Object.entries(priorities)) {
    const observed: EncodablePod = observeJson(jsonPod(name, { spec: { priority } }));
    pods.pods.set(name, observed);
  }
  return pods;
}

it("a hard policy evicts whom its ranking names, once it has been met for its grace period", async () => {
  const node = new TestNode();
  const sources = [
    node.source(
      policyOf(`
name: low
type: hard
observed: node.memory.available
operator: lessThan
threshold: quantity("100Mi")
gracePeriod: 10s
condition: { name: MemoryPressure, effects: [NoSchedule] }
pods: '!pod.name.startsWith("web")'
rank: [pod.priority]
terminationGracePeriod: 3s`),
    ),
    node.source(policyOf("name: never\ntype: hard\nwhen: node.psi.io.full.avg10 > 90\nrank: [1]")),
  ];
  const pods = podsWith({ a: 1, b: 5, c: 3, web: 9 });
  using agent = new TestAgent(directory, pods, sources, node.clock);
  agent.settings = { ...agent.settings, syncPeriod: 5_000 };
  const round = async (available: number) => {
    // Each reading is as old as the round.
    node.snapshot = { ...node.snapshot, memory: { value: { available }, at: node.clock.monotonic() } };
    node.snapshot.psi.io = { missing: "not measured" };
    await agent.round();
  };

  await round(90 * Mi);
  expect(agent.evictor.started).toEqual([]);
  expect(agent.tainter.desired.at(-1)?.node).toMatchObject([
    { key: expect.stringContaining("/MemoryPressure"), effect: "NoSchedule" },
  ]);
  await round(90 * Mi);
  await round(90 * Mi);
  expect(agent.evictor.started.map(({ name }) => name)).toEqual(["b"]);
  expect(agent.evictor.started[0]).toMatchObject({
    plugin: "policy-low",
    scope: "low",
    kind: "forced",
    gracePeriodSeconds: 3,
  });
  expect(agent.evictor.started[0]!.asks[0]!.threshold).toEqual({
    observedValue: 90 * Mi,
    thresholdValue: 100 * Mi,
    operator: "lessThan",
  });
});

it("a soft policy has its own ranking followed, and eviction's among equals", async () => {
  const node = new TestNode();
  const soft = (rank: string) => node.source(policyOf(`name: soft\ntype: soft\nwhen: true\nrank: ${rank}`));
  for (const [rank, expected] of [
    ["[pod.priority]", "c"],
    ["['pod.priority > 1 ? 1 : 0']", "b"],
  ]) {
    using agent = new TestAgent(directory, podsWith({ a: 1, b: 2, c: 3 }), [soft(rank!)], node.clock);
    await agent.round();
    expect(agent.evictor.started.map(({ name, kind }) => [name, kind])).toEqual([[expected, "soft"]]);
    rmSync(directory, { recursive: true });
    directory = mkdtempSync(join(tmpdir(), "nkp-"));
  }
});

it("a ranking that is given up fails that call alone", async () => {
  const node = new TestNode();
  const broken = node.source(policyOf("name: broken\ntype: hard\nwhen: true\nrank: [pod.usage.rss]"), {
    podUsage: async () => {
      throw new Error("the reader is broken");
    },
  });
  const right = node.source(policyOf("name: right\ntype: hard\nwhen: true\nrank: [pod.priority]"));
  using agent = new TestAgent(directory, podsWith({ a: 1, b: 2 }), [broken, right], node.clock);
  await agent.round();
  expect(agent.evictor.started.map(({ name, plugin }) => [name, plugin])).toEqual([["b", "policy-right"]]);
});

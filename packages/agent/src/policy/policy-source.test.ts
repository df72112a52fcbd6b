import { codeOf } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { never, testPod, topQuestion } from "../intree/eviction/testing/parts.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";
import { belowMinimum, Gi, Mi, policyOf, snapshotAt, TestNode } from "./testing/policies.ts";

const lowMemory = `${belowMinimum}
gracePeriod: 30s
condition: { name: MemoryPressure, effects: [NoSchedule] }
rank: [-pod.priority]`;

describe("the threshold", () => {
  it("is met below it, and returns all that a round needs", async () => {
    const node = new TestNode();
    const source = node.source(policyOf(lowMemory));
    expect(source.name).toBe("policy-low");
    const answer = {
      metType: "none",
      scope: "low",
      thresholdValue: 100 * Mi,
      observedValue: 8 * Gi,
      operator: "lessThan",
      gracePeriodSeconds: 30,
      condition: { target: "node", name: "MemoryPressure", effects: ["NoSchedule"], met: false },
      candidateUids: [],
    };
    expect(await source.thresholdMet([], never)).toEqual(answer);
    node.setAvailable(100 * Mi - 1);
    expect(await source.thresholdMet([], never)).toEqual({
      ...answer,
      metType: "hard",
      observedValue: 100 * Mi - 1,
      condition: { ...answer.condition, met: true },
    });
    node.setAvailable(100 * Mi);
    expect((await source.thresholdMet([], never)).metType).toBe("none");
    expect(await source.getEvictPods()).toEqual({ pods: [], condition: null });
  });

  it("has no series any more once the policy is removed, whatever it still reads", async () => {
    const node = new TestNode();
    const source = node.source(policyOf(lowMemory));
    const series = async () =>
      (await node.registry.metrics()).split("\n").filter((line) => line.includes('"low"'));
    node.setAvailable(1);
    await source.thresholdMet([], never);
    expect(await series()).toEqual(['nodekeeper_intree_policy_met{policy="low"} 1']);
    const reading = source.thresholdMet([], never);
    source.close(false);
    node.setAvailable(undefined);
    await expect(reading).rejects.toThrow("node.memory.available");
    await expect(source.thresholdMet([], never)).rejects.toThrow("node.memory.available");
    expect(await series()).toEqual([]);
  });

  it("keeps the series of its successor", async () => {
    const node = new TestNode();
    const [source, successor] = [node.source(policyOf(lowMemory)), node.source(policyOf(lowMemory))];
    await successor.thresholdMet([], never);
    source.close(true);
    expect(await node.registry.metrics()).toContain('nodekeeper_intree_policy_met{policy="low"} 0');
  });

  it("`when` decides where it is there", async () => {
    const node = new TestNode();
    const source = node.source(
      policyOf(`
name: busy
type: soft
when: node.cpu.usage > 0.2 && node.cpu.cores == 8
observed: node.cpu.usage
operator: greaterThan
threshold: 0.9
rank: [1]`),
    );
    expect(await source.thresholdMet([], never)).toMatchObject({
      metType: "soft",
      observedValue: 0.25,
      thresholdValue: 0.9,
    });
  });

  it("a policy without numbers returns none", async () => {
    const source = new TestNode().source(policyOf("name: a\ntype: soft\nwhen: true\nrank: [1]"));
    expect(await source.thresholdMet([], never)).toMatchObject({ observedValue: null, thresholdValue: null });
  });
});

describe("the minimum reclaim", () => {
  const reading = async (node: TestNode, source: ReturnType<TestNode["source"]>, available?: number) => {
    node.setAvailable(available);
    return await source.thresholdMet([], never).then(({ metType }) => metType, codeOf);
  };

  it("holds the pressure until so much is back", async () => {
    const node = new TestNode();
    const source = node.source(policyOf(`${lowMemory}\nminimumReclaim: quantity("50Mi")`));
    const met = [];
    for (const mebi of [120, 99, 120, 149.9, 150, 120, 99, 160])
      met.push(await reading(node, source, mebi * Mi));
    expect(met).toEqual(["none", "hard", "hard", "hard", "none", "none", "hard", "none"]);
  });

  it("holds over readings that are missing, while no pod is evicted for it", async () => {
    const node = new TestNode();
    const source = node.source(policyOf(`${lowMemory}\nminimumReclaim: quantity("50Mi")`));
    const met = [];
    for (const mebi of [99, undefined, 120, 150, undefined, 120]) {
      met.push(await reading(node, source, mebi === undefined ? undefined : mebi * Mi));
    }
    expect(met).toEqual(["hard", "invalid", "hard", "none", "invalid", "none"]);
  });

  it("goes the other way for what must not grow; a negative one holds nothing", async () => {
    for (const [reclaim, expected] of [
      ["5", ["none", "soft", "soft", "none"]],
      ["-5", ["none", "soft", "none", "none"]],
    ] as const) {
      const node = new TestNode();
      const policy = `name: a\ntype: soft\nobserved: node.pids.current\noperator: greaterThan\nthreshold: 10`;
      const source = node.source(policyOf(`${policy}\nminimumReclaim: ${reclaim}\nrank: [1]`));
      const met = [];
      for (const current of [10, 11, 6, 5]) {
        node.snapshot.pids = { value: { current }, at: node.clock.monotonic() };
        met.push((await source.thresholdMet([], never)).metType);
      }
      expect(met).toEqual(expected);
    }
  });
});

describe("a reading that is missing", () => {
  const missing = { missing: "the kernel measures no pressure" };
  const always = "node.cpu.usage >= 0 || node.psi.memory.some.avg10 > 1";
  const policy = policyOf(`name: a\ntype: hard\nwhen: ${always}\nrank: [1]`);

  const now = new TestNode().clock.monotonic();
  const noNumber = { some: { avg10: Number.NaN, avg60: 0, avg300: 0 } };
  const calm = { some: { avg10: 0, avg60: 0, avg300: 0 } };

  it.each<[string, NodeSnapshot["psi"]["memory"], string]>([
    ["a part", missing, "the kernel measures no pressure"],
    ["a field", { value: {}, at: now }, "the machine does not report it"],
    ["a stale part", { value: calm, at: now - 30_001 }, "read 30001 ms ago, more than 30000 ms"],
    ["no number", { value: noNumber, at: now }, "the machine does not report it"],
  ])("%s fails the call, even where the rest would do, and is counted", async (_what, memory, problem) => {
    const node = new TestNode();
    const source = node.source(policy);
    expect((await source.thresholdMet([], never)).metType).toBe("hard");
    node.snapshot.psi.memory = memory;
    for (let round = 0; round < 3; round++) {
      await expect(source.thresholdMet([], never)).rejects.toMatchObject({
        id: "NK1611",
        message: `node.psi.memory.some.avg10: ${problem}`,
      });
    }
    node.snapshot = snapshotAt(node.clock.monotonic());
    expect((await source.thresholdMet([], never)).metType).toBe("hard");
    const metrics = await node.registry.metrics();
    expect(metrics).toContain('nodekeeper_intree_policy_problems_total{policy="a",problem="node"} 3');
    expect(metrics).toContain('nodekeeper_intree_policy_met{policy="a"} 1');
  });

  it("may be as old as half a minute", async () => {
    const node = new TestNode();
    node.snapshot.psi.memory = { value: calm, at: now - 30_000 };
    expect((await node.source(policy).thresholdMet([], never)).metType).toBe("hard");
  });

  it("that no expression reads has no effect", async () => {
    const node = new TestNode();
    node.snapshot.imagefs = missing;
    expect((await node.source(policy).thresholdMet([], never)).metType).toBe("hard");
  });

  it("an expression that can't be evaluated fails the call with its place", async () => {
    const node = new TestNode();
    const text = `name: a\ntype: hard\nwhen: true\nobserved: 1 / 0\noperator: lessThan\nthreshold: 1\nrank: [1]`;
    await expect(node.source(policyOf(text)).thresholdMet([], never)).rejects.toThrow(
      "observed: test.yaml:5:15: division by zero",
    );
  });
});

describe("who goes", () => {
  const pods = ["a", "b", "c"].map((name, priority) => testPod(name, { priority }));
  const ask = (fields: string, topN: number, node = new TestNode()) =>
    node
      .source(policyOf(`${lowMemory}\n${fields}`))
      .getTopEvictionPods(pods, topQuestion("policy-low", "low", topN), never);

  it("as many as are asked for, who goes first is first", async () => {
    const reference = (name: string) => ({ uid: name, namespace: "default", name });
    expect(await ask("", 1)).toEqual({ pods: [reference("a")], gracePeriodSeconds: null });
    expect(await ask("", 5)).toEqual({ pods: ["a", "b", "c"].map(reference), gracePeriodSeconds: null });
  });

  it("without a limit, those whom the ranking puts first, and no others: among them eviction chooses", async () => {
    const rankedSoft = async (rank: string) => {
      const policy = policyOf(`name: a\ntype: soft\nwhen: true\nrank: ${rank}`);
      const answer = await new TestNode()
        .source(policy)
        .getTopEvictionPods(pods, topQuestion("policy-a", "a", 0), never);
      return answer.pods.map(({ name }) => name);
    };
    expect(await rankedSoft("[pod.priority]")).toEqual(["c"]);
    expect(await rankedSoft("['pod.priority > 0 ? 1 : 0']")).toEqual(["b", "c"]);
    expect(await rankedSoft("['pod.priority > 0 ? 1 : 0', -pod.priority]")).toEqual(["b"]);
    expect(await rankedSoft("[1]")).toEqual(["a", "b", "c"]);
    await expect(rankedSoft("[pod.usage.rss]")).rejects.toMatchObject({
      id: "NK1611",
      message: "no pod can be selected: 3 of 3 can't be judged; default/a: pod.usage.rss is not known",
    });
  });

  it("no pod that the filter does not take", async () => {
    expect((await ask("pods: pod.priority > 1", 5)).pods.map(({ name }) => name)).toEqual(["c"]);
    expect((await ask("pods: pod.priority > 2", 5)).pods).toEqual([]);
  });

  it("fails with the place where the filter can't be evaluated for any pod", async () => {
    await expect(ask('pods: pod.labels.app == "web"', 1)).rejects.toThrow(
      /3 of 3 can't be judged; default\/a: the filter: test\.yaml:\d+:\d+: No such key: app/,
    );
  });

  it("with the grace period that the policy gives them, in whole seconds", async () => {
    expect((await ask("terminationGracePeriod: 1500ms", 1)).gracePeriodSeconds).toBe(2);
    expect((await ask("terminationGracePeriod: 0s", 1)).gracePeriodSeconds).toBe(0);
  });

  it("what pods use is read where it matters only; who is not known is left out, and logged once", async () => {
    const node = new TestNode();
    node.usages = { b: { rss: 5 } };
    await ask("", 1, node);
    expect(node.usageReads).toBe(0);
    const source = node.source(policyOf(`${lowMemory}\npods: pod.usage.rss > 1`));
    for (let round = 0; round < 3; round++) {
      const top = await source.getTopEvictionPods(pods, topQuestion("policy-low", "low", 5), never);
      expect(top.pods.map(({ name }) => name)).toEqual(["b"]);
    }
    expect(node.usageReads).toBe(3);
    expect(node.logged).toMatchObject([
      {
        message: "eviction policy leaves out pods that it can't judge",
        fields: {
          policy: "low",
          count: 2,
          pods: [{ name: "a", why: "pod.usage.rss is not known" }, { name: "c" }],
        },
      },
    ]);
    expect(await node.registry.metrics()).toContain('policy_problems_total{policy="low",problem="pods"} 3');
  });
});

describe("what pods use", () => {
  const over = "when: node.memory.available > 0";

  it.each([
    ["[-pod.priority]", [], []],
    ["[pod.usage.disk]", [], ["pod.usage.disk"]],
    // CPUs are those between two looks, so each round takes one.
    ["[pod.usage.cpu, pod.usage.pids]", ["pod.usage.cpu"], ["pod.usage.cpu", "pod.usage.pids"]],
  ])("is read only where a policy asks: %s", async (rank, eachRound, whenRanked) => {
    const node = new TestNode();
    const source = node.source(policyOf(`name: a\ntype: hard\n${over}\nrank: ${rank}`));
    await source.thresholdMet([], never);
    expect(node.usageFields.splice(0)).toEqual(eachRound);
    node.usages = { p: { cpu: 1, pids: 1, disk: 1 } };
    await source.getTopEvictionPods([testPod("p")], topQuestion("", ""), never);
    expect(node.usageFields).toEqual(whenRanked);
  });
});

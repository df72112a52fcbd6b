import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { observeJson } from "./observe/observed-pod.ts";
import { forcing, hard, sourceOf, TestAgent } from "./testing/manager-setup.ts";
import { FakePods, jsonPod } from "./testing/round-parts.ts";
import { evictPod, named, namesOf, nodeCondition, testThreshold } from "./testing/rounds.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nke-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("a round", () => {
  it("evicts what plugins ask for, and writes it down with its input", async () => {
    using agent = new TestAgent(directory, new FakePods("a", "b"), [forcing("b")]);
    await agent.round();
    expect(namesOf(agent.evictor.started)).toEqual(["b"]);
    const [record] = [...agent.records.rounds()];
    expect(record?.input.pods.map((pod) => pod.name)).toEqual(["a", "b"]);
    expect(namesOf(record?.decision.victims ?? [])).toEqual(["b"]);
    expect(agent.manager.healthCheck().check().ok).toBe(true);
  });

  it("marks what it decided, and a refusal that stands once", async () => {
    using agent = new TestAgent(directory, new FakePods("a", "b", "c"), [
      sourceOf("soft", {
        getEvictPods: async () => ({ pods: ["a", "b"].map((name) => evictPod(name)), condition: null }),
        thresholdMet: async () => ({ ...hard, condition: nodeCondition("Hot") }),
      }),
    ]);
    for (let round = 0; round < 3; round++) await agent.round();
    const { length } = agent.marks;
    await agent.round();
    expect(agent.marks).toHaveLength(length);
    const shown = agent.marks.map(({ kind, pod, plugin }) => [kind, pod?.name, plugin]);
    expect(shown.filter(([kind]) => kind === "evictionSelected")).toEqual([
      ["evictionSelected", "a", "soft"],
    ]);
    expect(shown.filter(([kind]) => kind === "conditionSet")).toEqual([["conditionSet", undefined, "soft"]]);
    expect(shown).toContainEqual(["evictionRefused", "b", "soft"]);
    expect(agent.marks[0]).toMatchObject({ round: 1, at: expect.any(Number) });
  });

  it("is not written down where nothing happened", async () => {
    using agent = new TestAgent(directory, new FakePods("a"), [sourceOf("quiet")]);
    await agent.round();
    await agent.round();
    expect([...agent.records.rounds()]).toEqual([]);
  });

  it("offers plugins no protected pod", async () => {
    const pods = new FakePods("a");
    pods.pods.set("s", observeJson(jsonPod("s", { spec: { priority: 2_000_001_000 } })));
    const offered: string[][] = [];
    const plugin = sourceOf("curious", {
      thresholdMet: async (seen) => {
        offered.push(seen.map(({ pod }) => pod.name));
        return testThreshold();
      },
    });
    using agent = new TestAgent(directory, pods, [plugin]);
    await agent.round();
    expect(offered).toEqual([["a"]]);
  });

  it("asks for top pods once the threshold has been met for its grace period", async () => {
    const plugin = sourceOf("memory", {
      thresholdMet: async () => ({ ...hard, gracePeriodSeconds: 10 }),
      getTopEvictionPods: async (pods, { topN }) => ({
        pods: pods.slice(0, topN).map(({ pod }) => pod),
        gracePeriodSeconds: null,
      }),
    });
    using agent = new TestAgent(directory, new FakePods("a", "b"), [plugin]);
    await agent.round();
    await agent.round();
    expect(agent.evictor.started).toEqual([]);
    await agent.round();
    expect(namesOf(agent.evictor.started)).toEqual(["a"]);
  });

  it("is skipped while the pods are not known, and reports it", async () => {
    const pods = new FakePods("a");
    pods.isSynced = false;
    using agent = new TestAgent(directory, pods, [forcing("a")]);
    await agent.round();
    expect(agent.manager.healthCheck().check()).toEqual({
      ok: false,
      message: "the API server has not listed the pods of this node yet",
      errorId: "NK1613",
    });
    expect(agent.evictor.started).toEqual([]);
    pods.isSynced = true;
    await agent.round();
    expect(agent.manager.healthCheck().check().ok).toBe(true);
  });

  it("takes no more than the burst from a plugin that names all of 2,000 pods, forced, each round", async () => {
    const names = Array.from({ length: 2_000 }, (_, at) => `pod-${at}`);
    using agent = new TestAgent(directory, new FakePods(...names), [forcing(...names)]);
    for (let count = 1; count <= 5; count++) {
      await agent.round();
      expect(agent.evictor.started).toHaveLength(3 * count);
    }
    expect(new Set(namesOf(agent.evictor.started)).size).toBe(15);
    expect([...agent.records.rounds()]).toHaveLength(5);
  });

  it("is not stopped by one that fails", async () => {
    using agent = new TestAgent(directory, new FakePods("a", "b"), [forcing("a")]);
    agent.evictor.onStart = () => {
      throw new Error("a defect");
    };
    await agent.round();
    expect(agent.manager.healthCheck().check()).toEqual({
      ok: false,
      message: "the last round failed: a defect",
      errorId: "NK1613",
    });
    agent.evictor.onStart = () => {};
    await agent.round();
    expect(agent.manager.healthCheck().check().ok).toBe(true);
  });

  it("in dry run evicts no pod, and counts those that would have been", async () => {
    using agent = new TestAgent(directory, new FakePods("a", "b"), [forcing("a")]);
    agent.policy.dryRunPlugins = ["*"];
    await agent.round();
    expect(agent.evictor.started).toEqual([]);
    const text = await agent.registry.metrics();
    expect(text).toContain('nodekeeper_eviction_dry_run_victims_total{plugin="forcing",kind="forced"} 1');
    expect(text).toContain('nodekeeper_eviction_refusals_total{reason="dryRun"} 1');
    expect(text).toContain('nodekeeper_eviction_rounds_total{result="done"} 1');
    expect(text).toContain('nodekeeper_eviction_round_step_seconds_total{step="decide"} ');
  });

  it("withdraws evictions in progress when the pressure has ended", async () => {
    let metType: "hard" | "none" = "hard";
    const plugin = sourceOf("memory", {
      thresholdMet: async () => ({ ...hard, metType }),
      getTopEvictionPods: async (pods) => ({ pods: [pods[0]!.pod], gracePeriodSeconds: null }),
    });
    using agent = new TestAgent(directory, new FakePods("a", "b"), [plugin]);
    await agent.round();
    expect(namesOf(agent.evictor.started)).toEqual(["a"]);
    metType = "none";
    await agent.round();
    expect(agent.evictor.withdrawn).toMatchObject([{ name: "a", stage: "started" }]);
    agent.evictor.outcomes.push({ uid: "a", result: "withdrawn", message: "nothing was sent" });
    await agent.round();
    expect(agent.manager.state.pending).toEqual([]);
  });

  it("in which a pressure finds no pod is recorded once, and again when something about it changes", async () => {
    let metType: "hard" | "none" = "hard";
    let found: string[] = [];
    const plugin = sourceOf("memory", {
      thresholdMet: async () => ({ ...hard, metType, observedValue: Math.random() }),
      getTopEvictionPods: async () => ({ pods: found.map(named), gracePeriodSeconds: null }),
    });
    using agent = new TestAgent(directory, new FakePods("a"), [plugin]);
    const recorded = () => [...agent.records.rounds()].length;
    for (let count = 0; count < 10; count++) await agent.round();
    expect(recorded()).toBe(1);
    metType = "none";
    await agent.round();
    metType = "hard";
    await agent.round();
    expect(recorded()).toBe(2);
    found = ["a"];
    await agent.round();
    expect(recorded()).toBe(3);
    // Its victim holds the pressure back: once more, however long that lasts.
    for (let count = 0; count < 10; count++) await agent.round();
    expect(recorded()).toBe(4);
  });

  it("never overlaps another, though its steps take longer than the period", async () => {
    let running = 0;
    let most = 0;
    let asked = 0;
    const slowly = async () => {
      most = Math.max(most, ++running);
      asked++;
      await agent.clock.sleep(4_000);
      running--;
    };
    const slow = sourceOf("slow", {
      thresholdMet: async () => {
        await slowly();
        return hard;
      },
      getTopEvictionPods: async () => {
        await slowly();
        return { pods: [], gracePeriodSeconds: null };
      },
    });
    using agent = new TestAgent(directory, new FakePods("a"), [slow]);
    await agent.round();
    for (let count = 0; count < 8; count++) await agent.round();
    expect(asked).toBe(11);
    expect(most).toBe(1);
  });

  it("continues when the state can't be written, and fails the readiness check", async () => {
    using agent = new TestAgent(directory, new FakePods("a"), [forcing("a")]);
    agent.database.connection.exec("DROP TABLE eviction_state");
    await agent.round();
    expect(namesOf(agent.evictor.started)).toEqual(["a"]);
    expect(agent.manager.healthCheck().check().message).toMatch(/can't be recorded: no such table/);
  });

  it("notifies annotated pods, repeatedly", async () => {
    const pods = new FakePods();
    const annotations = { "katalyst.kubewharf.io/pod_soft_evict_notify": "true" };
    pods.pods.set("a", observeJson(jsonPod("a", { metadata: { annotations } })));
    const plugin = sourceOf("soft", {
      getEvictPods: async () => ({ pods: [evictPod("a")], condition: null }),
    });
    using agent = new TestAgent(directory, pods, [plugin]);
    await agent.round();
    await agent.round();
    expect(agent.events).toHaveLength(1);
    expect(agent.events[0]).toMatchObject({ reason: "SoftEvictionNotice", regarding: { uid: "a" } });
    for (let count = 0; count < 60; count++) await agent.round();
    expect(agent.events).toHaveLength(2);
  });
});

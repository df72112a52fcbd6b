import { describe, expect, it } from "vitest";
import {
  evictPod,
  namesOf,
  nodeCondition,
  type TestPlugin,
  TestRounds,
  testPod,
} from "../../../agent/src/eviction/testing/rounds.ts";
import type { EvictionPod } from "./pods.ts";

const forced = (...names: string[]): TestPlugin => ({
  pods: names.map((name) => evictPod(name, { force: true })),
});
const soft = (...names: string[]): TestPlugin => ({ pods: names.map((name) => evictPod(name)) });
const hard = (
  top: string[],
  changes: NonNullable<Exclude<TestPlugin["threshold"], string>> = {},
): TestPlugin => ({
  threshold: { metType: "hard", ...changes },
  top,
});

function pods(...names: string[]): EvictionPod[] {
  return names.map((name) => testPod(name));
}

describe("the victims", () => {
  it("selects no pod without a request", () => {
    const decision = new TestRounds(pods("a", "b")).play({ p: {} });
    expect(decision.victims).toEqual([]);
    expect(decision.ranking.map(({ outcome }) => outcome)).toEqual(["notAsked", "notAsked"]);
  });

  it("takes forced pods within the burst, the least important first, and lets the others wait", () => {
    const rounds = new TestRounds([
      testPod("high", { priority: 100 }),
      testPod("low"),
      testPod("middle", { priority: 50 }),
      testPod("reclaimed", { priority: 1000, qosLevel: "reclaimed_cores" }),
    ]);
    const plugins = { p: forced("high", "low", "middle", "reclaimed") };
    const first = rounds.play(plugins);
    expect(namesOf(first.victims)).toEqual(["reclaimed", "low", "middle"]);
    expect(first.victims.map(({ order }) => order)).toEqual([1, 2, 3]);
    expect(first.ranking.map(({ name, outcome }) => [name, outcome])).toContainEqual(["high", "waiting"]);
    expect(first.refusalCounts).toEqual({ overBurst: 1 });
    rounds.pass(5);
    expect(namesOf(rounds.play(plugins).victims)).toEqual(["high"]);
  });

  it("selects one soft pod per round, after the forced ones, with a reason for the others", () => {
    const rounds = new TestRounds([
      testPod("a", { priority: 5 }),
      testPod("b"),
      testPod("c", { priority: 9 }),
    ]);
    const { victims, ranking } = rounds.play({ p: soft("a", "b"), q: forced("c") });
    expect(victims.map(({ name, kind }) => [name, kind])).toEqual([
      ["c", "forced"],
      ["b", "soft"],
    ]);
    expect(ranking.find(({ name }) => name === "a")?.why).toBe(
      "ranked higher than default/b: priority 5 over 0; at most one soft eviction per round",
    );
  });

  it("prefers force where one plugin forces a pod and another only offers it", () => {
    const { victims } = new TestRounds(pods("a")).play({ p: soft("a"), q: forced("a") });
    expect(victims).toMatchObject([{ name: "a", kind: "forced", plugin: "q" }]);
    expect(victims[0]?.asks.map(({ plugin }) => plugin)).toEqual(["q", "p"]);
  });

  it("takes the least important where a hard threshold's plugin names more than the one asked for", () => {
    const rounds = new TestRounds([
      testPod("a", { priority: 5 }),
      testPod("b"),
      testPod("c", { priority: 9 }),
    ]);
    const { victims, refusalCounts } = rounds.play({ p: hard(["a", "b", "c"]) });
    expect(namesOf(victims)).toEqual(["b"]);
    expect(refusalCounts).toEqual({ overTopN: 2 });
  });

  it("gives the plugin, the observed value and the threshold as the reason", () => {
    const { victims } = new TestRounds(pods("a")).play({ p: hard(["a"]) });
    expect(victims).toMatchObject([{ plugin: "p", reason: "memory 0.9 > threshold 0.8" }]);
  });

  it("notifies annotated pods, and never selects them for a soft eviction", () => {
    const rounds = new TestRounds([testPod("a", { softEvictNotify: true }), testPod("b", { priority: 9 })]);
    const decision = rounds.play({ p: soft("a", "b") });
    expect(namesOf(decision.notifications)).toEqual(["a"]);
    expect(namesOf(decision.victims)).toEqual(["b"]);
    expect(decision.refusalCounts).toEqual({ notifyOnly: 1 });
    expect(namesOf(rounds.play({ p: forced("a") }).victims)).toEqual(["a"]);
  });
});

describe("whom it refuses", () => {
  it.each([
    ["otherNode", { nodeName: "node-2" }],
    ["finished", { phase: "Failed" }],
    ["terminating", { deletionTimestamp: 5 }],
    ["mirror", { isMirror: true }],
    ["static", { isStatic: true }],
    ["critical", { priority: 2_000_000_000 }],
    ["critical", { priorityClassName: "system-node-critical" }],
    // Being critical comes first: a QoS level that can't be read opens no way around it.
    ["critical", { priority: 2_000_001_000, qosLevel: "unknown" }],
    ["systemQos", { qosLevel: "system_cores" }],
    ["daemonSet", { owner: { kind: "DaemonSet", name: "d", uid: "d" } }],
    ["skipLabel", { labels: { keep: "" } }],
    ["skipAnnotation", { annotationKeys: ["keep"] }],
  ] as const)("%s pods, for any plugin", (reason, changes) => {
    const rounds = new TestRounds([
      testPod("a", structuredClone(changes) as Partial<EvictionPod>),
      testPod("b"),
    ]);
    rounds.policy.skip = { labelKeys: ["keep"], annotationKeys: ["keep"], evictDaemonSetPods: false };
    const decision = rounds.play({ p: forced("a"), q: soft("a"), r: hard(["a"]) });
    expect(decision.victims).toEqual([]);
    expect(decision.exclusions).toMatchObject([{ name: "a", reason }]);
    expect(decision.refusals.map(({ plugin, reason }) => [plugin, reason])).toEqual([
      ["p", reason],
      ["q", reason],
      ["r", reason],
    ]);
  });

  it("takes DaemonSet pods where that is configured", () => {
    const owner = { kind: "DaemonSet", name: "d", uid: "d" };
    const rounds = new TestRounds([testPod("a", { owner })]);
    rounds.policy.skip.evictDaemonSetPods = true;
    expect(namesOf(rounds.play({ p: forced("a") }).victims)).toEqual(["a"]);
  });

  it("unknown pods, and pods under a wrong name", () => {
    const { victims, refusals } = new TestRounds(pods("a")).play({
      p: {
        pods: [
          evictPod("x", { force: true }),
          evictPod("", { force: true, pod: { uid: "", namespace: "", name: "a" } }),
          evictPod("a", { force: true, pod: { uid: "a", namespace: "default", name: "b" } }),
        ],
      },
    });
    expect(victims).toEqual([]);
    expect(refusals.map(({ uid, reason }) => [uid, reason])).toEqual([
      ["", "unknownPod"],
      ["a", "nameMismatch"],
      ["x", "unknownPod"],
    ]);
  });

  it("a flood of unknown pods, with a bounded record and a full count", () => {
    const names = Array.from({ length: 1000 }, (_, index) => `x${index}`);
    const { refusals, refusalCounts } = new TestRounds([]).play({ p: forced(...names), q: forced("y") });
    expect(refusalCounts).toEqual({ unknownPod: 1001 });
    expect(refusals.filter(({ plugin }) => plugin === "p")).toHaveLength(200);
    expect(refusals.filter(({ plugin }) => plugin === "q")).toHaveLength(1);
  });

  it("all requests of plugins in dry run, and shows which pods would have been evicted", () => {
    const rounds = new TestRounds(pods("a", "b"), { dryRunPlugins: ["p"] });
    const decision = rounds.play({
      p: { ...forced("a"), podsCondition: nodeCondition("c") },
      q: forced("b"),
    });
    expect(namesOf(decision.victims)).toEqual(["b"]);
    expect(namesOf(decision.dryRunVictims)).toEqual(["a"]);
    expect(decision.refusals).toMatchObject([{ plugin: "p", name: "a", reason: "dryRun" }]);
    expect(decision.ranking.find(({ name }) => name === "a")).toMatchObject({
      outcome: "refused",
      why: "the plugin is in dry run",
    });
    expect(decision.conditions).toEqual([]);
    expect(decision.state.pending.map(({ name }) => name)).toEqual(["b"]);
  });
});

describe("grace periods of victims", () => {
  const graceOf = (gracePeriodSeconds: number | null, allowZero = false) => {
    const rounds = new TestRounds(pods("a"));
    rounds.policy.grace.allowZero = allowZero;
    const { victims } = rounds.play({ p: { pods: [evictPod("a", { force: true, gracePeriodSeconds })] } });
    return victims[0]?.gracePeriodSeconds;
  };

  it.each([
    ["the pod's own if the plugin sends none", null, false, null],
    ["the plugin's", 5, false, 5],
    ["the pod's own for a negative one", -1, false, null],
    ["the pod's own for a 0 that is not allowed", 0, false, null],
    ["0 where it is allowed", 0, true, 0],
    ["the longest allowed for an enormous one", 9.2e18, false, 3600],
    ["the pod's own for none at all", Number.NaN, false, null],
  ])("is %s", (_, requested, allowZero, expected) => expect(graceOf(requested, allowZero)).toBe(expected));

  it("is the longest of several requests, the pod's own among them", () => {
    const play = (...requested: (number | null)[]) => {
      const plugins = requested.map((gracePeriodSeconds, index) => [
        `p${index}`,
        { pods: [evictPod("a", { force: true, gracePeriodSeconds })] },
      ]);
      return new TestRounds(pods("a")).play(Object.fromEntries(plugins)).victims[0]?.gracePeriodSeconds;
    };
    expect(play(5, 60, 10)).toBe(60);
    expect(play(5, null)).toBe(null);
    expect(play(null, 5)).toBe(null);
    expect(play(60, null)).toBe(60);
    expect(play(30, null)).toBe(null);
  });

  it("never leaks from one pod to another", () => {
    const rounds = new TestRounds(pods("a", "b"));
    const { victims } = rounds.play({
      p: {
        threshold: { metType: "hard" },
        top: { pods: [{ uid: "a", namespace: "", name: "" }], gracePeriodSeconds: 5 },
      },
      q: { pods: [evictPod("a", { force: true, gracePeriodSeconds: 50 }), evictPod("b", { force: true })] },
    });
    expect(victims.map(({ name, gracePeriodSeconds }) => [name, gracePeriodSeconds])).toEqual([
      ["a", 50],
      ["b", null],
    ]);
  });
});

describe("an answer that is long, odd or missing", () => {
  it("is reported, and does not affect others", () => {
    const decision = new TestRounds(pods("a")).play({
      broken: { pods: "connection reset", threshold: "deadline of 10 s passed" },
      mute: { threshold: { metType: "hard" }, top: "no answer" },
      fine: forced("a"),
    });
    expect(namesOf(decision.victims)).toEqual(["a"]);
    expect(decision.failures).toEqual([
      { plugin: "broken", call: "getEvictPods", failure: "connection reset" },
      { plugin: "broken", call: "thresholdMet", failure: "deadline of 10 s passed" },
      { plugin: "mute", call: "getTopEvictionPods", failure: "no answer" },
    ]);
  });

  it("counts a pod named many times once", () => {
    const requests = [5, 100, 60].map((gracePeriodSeconds) =>
      evictPod("a", { force: true, gracePeriodSeconds }),
    );
    const { victims } = new TestRounds(pods("a")).play({ p: { pods: [...requests, evictPod("a")] } });
    expect(victims).toMatchObject([{ name: "a", gracePeriodSeconds: 100 }]);
    expect(victims[0]?.asks.map(({ kind }) => kind)).toEqual(["forced", "soft"]);
  });
});

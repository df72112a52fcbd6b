import { describe, expect, it } from "vitest";
import {
  evictPod,
  namesOf,
  nodeCondition,
  type TestPlugin,
  TestRounds,
  testNode,
  testPod,
  testPolicy,
} from "../../../agent/src/eviction/testing/rounds.ts";
import { collectAsks } from "./asks.ts";
import { selectCandidates } from "./candidates.ts";
import type { QosLevel } from "./pods.ts";
import { isDryRun } from "./policy.ts";
import { prepareRound } from "./prepare.ts";
import { rankOrder } from "./rank.ts";
import { RefusalLog } from "./refusal-log.ts";

// Behaviours of katalyst's eviction manager that operators rely on.

describe("what is collected from plugins", () => {
  const plugins: Record<string, TestPlugin> = {
    plugin1: { pods: [evictPod("pod-1"), evictPod("pod-2", { force: true }), evictPod("pod-5")] },
    plugin2: {
      threshold: {
        metType: "hard",
        scope: "plugin2_scope",
        gracePeriodSeconds: -1,
        condition: nodeCondition("diskPressure"),
      },
      top: ["pod-3"],
    },
    plugin3: {
      threshold: { metType: "soft", scope: "plugin3_scope", gracePeriodSeconds: -1 },
      top: ["pod-3"],
    },
  };
  const pods = [1, 2, 3, 4, 5].map((number) => testPod(`pod-${number}`));

  it.each([
    { dryRun: [], soft: [1, 3, 5], forced: [2, 3], conditions: ["diskPressure"] },
    { dryRun: ["plugin1"], soft: [3], forced: [3], conditions: ["diskPressure"] },
    { dryRun: ["plugin2"], soft: [1, 3, 5], forced: [2], conditions: [] },
    { dryRun: ["plugin1", "plugin2"], soft: [3], forced: [], conditions: [] },
    { dryRun: ["*"], soft: [], forced: [], conditions: [] },
  ])("dry run of $dryRun", ({ dryRun, soft, forced, conditions }) => {
    const rounds = new TestRounds(pods, { dryRunPlugins: dryRun });
    const input = rounds.input(plugins);
    const { policy } = input;
    const sources = { ...input, prepared: prepareRound(input), unusable: [] };
    const { asked: collected } = collectAsks(sources, new RefusalLog());
    const asked = (kind: string) =>
      [...collected.values()]
        .filter(({ asks }) => asks.some((ask) => ask.kind === kind && !isDryRun(policy, ask.plugin)))
        .map(({ pod }) => pod.name)
        .sort();
    expect(asked("soft")).toEqual(soft.map((number) => `pod-${number}`));
    expect(asked("forced")).toEqual(forced.map((number) => `pod-${number}`));

    const decision = rounds.play(plugins);
    expect(decision.conditions.map(({ name }) => name)).toEqual(conditions);
    const unforced = soft.filter((number) => !forced.includes(number));
    const expected = [...forced, ...unforced.slice(0, 1)].map((number) => `pod-${number}`);
    expect(namesOf(decision.victims).sort()).toEqual(expected.sort());
  });
});

describe("who is more important", () => {
  const mostImportantFirst = [
    "shared-100-force",
    "shared-80-force",
    "dedicated-80-memory",
    "shared-80-cpu",
    "shared-70-memory",
    "dedicated-60-memory",
    "shared-60-cpu",
    "shared-60-emp",
    "dedicated-60-emp",
    "reclaimed-100-force",
    "reclaimed-100-emp",
    "reclaimed-20-force",
  ];
  const ranked = mostImportantFirst.map((name) => {
    const [level, priority, scope] = name.split("-") as [string, string, string];
    const pod = testPod(name, { qosLevel: `${level}_cores` as QosLevel, priority: Number(priority) });
    return { pod, scope };
  });

  const order = rankOrder(testPolicy().ranking);

  it("is decided by QoS level, priority, scope and name", () => {
    const sorted = [...ranked].sort((a, b) => (a.pod.name < b.pod.name ? -1 : 1)).sort(order);
    expect(sorted.map(({ pod }) => pod.name)).toEqual([...mostImportantFirst].reverse());
  });

  it("makes the LEAST important the soft victim", () => {
    const rounds = new TestRounds(ranked.map(({ pod }) => pod));
    const { victims } = rounds.play({ p: { pods: mostImportantFirst.map((name) => evictPod(name)) } });
    expect(namesOf(victims)).toEqual(["reclaimed-20-force"]);
  });

  it("is that of the priority, whatever the QoS class", () => {
    const pods = [
      testPod("g", { qosClass: "Guaranteed", priority: -5 }),
      testPod("b", { qosClass: "Burstable", priority: 0 }),
      testPod("e", { qosClass: "BestEffort", priority: 1000 }),
    ];
    const ordered = pods.map((pod) => ({ pod, scope: null })).sort(order);
    expect(ordered.map(({ pod }) => pod.name)).toEqual(["g", "b", "e"]);
  });
});

it.each([
  { why: "system_cores", changes: { qosLevel: "system_cores" }, reason: "systemQos" },
  { why: "a config.source other than api", changes: { isStatic: true }, reason: "static" },
  { why: "nothing special", changes: {}, reason: undefined },
] as const)("a pod with $why: $reason", ({ changes, reason }) => {
  const { exclusions } = selectCandidates([testPod("p", changes)], testNode, new TestRounds([]).policy.skip);
  expect(exclusions[0]?.reason).toBe(reason);
});

describe("taints", () => {
  it("are none without conditions", () =>
    expect(new TestRounds([]).play({}).taints).toEqual({ node: [], customNodeResource: [] }));

  it("keeps node conditions and those of the CustomNodeResource apart", () => {
    const { taints } = new TestRounds([]).play({
      a: { podsCondition: nodeCondition("disk") },
      b: {
        podsCondition: nodeCondition("cpu", {
          target: "customNodeResource",
          effects: ["reclaimed_cores/NoSchedule", "reclaimed_cores/NoSchedule"],
        }),
      },
    });
    expect(taints).toEqual({
      node: [{ key: "nodekeeper.dev/disk", effect: "NoSchedule", since: 1_000_000, why: "a reports it" }],
      customNodeResource: [
        {
          qosLevel: "reclaimed_cores",
          key: "nodekeeper.dev/cpu",
          effect: "NoSchedule",
          since: 1_000_000,
          why: "b reports it",
        },
      ],
    });
  });

  it.each([
    ["node", "NoSuchEffect"],
    ["customNodeResource", "NoSchedule"],
    ["customNodeResource", "shared_cores/NoSchedule"],
    ["customNodeResource", "reclaimed_cores/NoSuchEffect"],
    ["customNodeResource", "reclaimed_cores/NoSchedule/more"],
  ] as const)("reports %s effect %s and leaves out only it", (target, effect) => {
    const good = target === "node" ? "NoExecute" : "reclaimed_cores/NoExecute";
    const condition = nodeCondition("c", { target, effects: [effect, good] });
    const rounds = new TestRounds([], { taintEffects: ["NoSchedule", "NoExecute"] });
    const { taints, conditionProblems } = rounds.play({ a: { podsCondition: condition } });
    expect(taints[target].map((taint) => taint.effect)).toEqual(["NoExecute"]);
    expect(conditionProblems).toEqual([
      {
        condition: "c",
        plugins: ["a"],
        reason: "invalidEffect",
        message: expect.stringContaining(effect),
      },
    ]);
  });

  it("refuses a condition whose name can't be part of a key", () => {
    const { taints, conditionProblems } = new TestRounds([]).play({
      a: { podsCondition: nodeCondition("a/b") },
    });
    expect(taints.node).toEqual([]);
    expect(conditionProblems[0]?.message).toContain('"a/b"');
  });
});

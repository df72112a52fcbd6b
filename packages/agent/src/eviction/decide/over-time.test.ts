import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { evictPod, namesOf, nodeCondition, type TestPlugin, TestRounds, testPod } from "../testing/rounds.ts";
import type { ThresholdAnswer } from "./answers.ts";
import { prepareRound } from "./prepare.ts";
import { resumeState } from "./state.ts";

const hard = (changes: Partial<ThresholdAnswer> = {}): TestPlugin => ({
  threshold: { metType: "hard", ...changes },
  top: ["a"],
});
const soft = (changes: Partial<ThresholdAnswer> = {}) => hard({ metType: "soft", ...changes });
const forced = (...names: string[]): TestPlugin => ({
  pods: names.map((name) => evictPod(name, { force: true })),
});

function someRounds(policy = {}) {
  return new TestRounds([testPod("a"), testPod("b", { priority: 5 })], policy);
}

describe("grace timers", () => {
  const grace = { gracePeriodSeconds: 10 };

  // Each step: seconds that pass before it, what the plugin answers, whether the threshold is confirmed then.
  it.each<[string, [number, TestPlugin | undefined, boolean][]]>([
    [
      "run while the threshold is met",
      [
        [0, hard(grace), false],
        [9, hard(grace), false],
        [1, hard(grace), true],
      ],
    ],
    [
      "start again after a break",
      [
        [0, hard(grace), false],
        [9, {}, false],
        [1, hard(grace), false],
        [10, hard(grace), true],
      ],
    ],
    [
      "start again from soft to hard",
      [
        [0, soft(grace), false],
        [10, hard(grace), false],
        [10, hard(grace), true],
      ],
    ],
    [
      "continue from hard to soft, for hard was soft too",
      [
        [0, hard(grace), false],
        [10, soft(grace), true],
      ],
    ],
    [
      "start again for another scope",
      [
        [0, hard(grace), false],
        [10, hard({ ...grace, scope: "cpu" }), false],
      ],
    ],
    [
      "run on while another scope of the plugin is reported",
      [
        [0, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
        [5, hard(grace), true],
        [5, hard({ ...grace, scope: "cpu" }), true],
      ],
    ],
    [
      "start again for a scope that was not reported for long",
      [
        [0, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
        [296, hard(grace), false],
        [10, hard(grace), true],
      ],
    ],
    [
      "of all scopes end with the plugin's pressure",
      [
        [0, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
        [5, {}, false],
        [5, hard(grace), false],
        [5, hard({ ...grace, scope: "cpu" }), false],
      ],
    ],
    [
      "outlive a failing plugin",
      [
        [0, hard(grace), false],
        [600, { threshold: "connection refused" }, false],
        [1, hard(grace), true],
      ],
    ],
    [
      "outlive a plugin that restarts",
      [
        [0, hard(grace), false],
        [9, undefined, false],
        [1, hard(grace), true],
      ],
    ],
    [
      "don't outlive a disconnected plugin",
      [
        [0, hard(grace), false],
        [300, undefined, false],
        [1, hard(grace), false],
      ],
    ],
    ["don't wait for a negative grace period", [[0, hard({ gracePeriodSeconds: -1 }), true]]],
    [
      "wait indefinitely for an enormous one",
      [
        [0, hard({ gracePeriodSeconds: 9.2e18 }), false],
        [1e6, hard({ gracePeriodSeconds: 9.2e18 }), false],
      ],
    ],
    [
      "never end for a threshold that flaps",
      Array.from({ length: 10 }, (_, index) => [6, index % 2 ? {} : hard(grace), false]),
    ],
  ])("%s", (_, steps) => {
    const rounds = someRounds();
    for (const [seconds, plugin, confirmed] of steps) {
      rounds.pass(seconds);
      const { thresholds } = rounds.play(plugin ? { p: plugin } : {});
      expect(thresholds.some((threshold) => threshold.confirmed)).toBe(confirmed);
    }
  });

  it("take ever new scopes of one plugin for one pressure, and stay few", () => {
    const rounds = someRounds();
    let confirmed = 0;
    for (let round = 0; round < 60; round++) {
      const { thresholds } = rounds.play({ p: hard({ gracePeriodSeconds: 60, scope: `disk-${round}` }) });
      if (thresholds[0]?.confirmed) confirmed++;
      expect(thresholds[0]?.confirmed && round < 12).toBe(false);
      rounds.pass(5);
    }
    expect(confirmed).toBeGreaterThan(30);
    expect(rounds.state.thresholds.length).toBeLessThanOrEqual(16);
  });

  it("never restart while the pressure lasts, however its name changes, and never confirm too early", () => {
    const step = fc.record({
      scope: fc.constantFrom("cpu", "memory", "disk"),
      seconds: fc.integer({ min: 1, max: 10 }),
    });
    const metType = fc.constantFrom("hard" as const, "soft" as const);
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 300, maxLength: 300 }),
        fc.nat(60),
        metType,
        (steps, seconds, type) => {
          const rounds = someRounds();
          const begin = rounds.now;
          const firstReported = new Map<string, number>();
          let confirmed = 0;
          for (const { scope, seconds: pause } of steps) {
            if (rounds.now - begin > 300_000) break;
            if (!firstReported.has(scope)) firstReported.set(scope, rounds.now);
            const threshold = { metType: type, scope, gracePeriodSeconds: seconds };
            const [met] = rounds.play({ p: { threshold } }).thresholds;
            const age = rounds.now - firstReported.get(scope)!;
            expect(met?.confirmed).toBe(age >= seconds * 1000);
            if (met?.confirmed) confirmed++;
            rounds.pass(pause);
          }
          expect(confirmed).toBeGreaterThan(0);
        },
      ),
      { numRuns: 30 },
    );
  });

  it("are each plugin's own", () => {
    const rounds = someRounds();
    rounds.play({ p: hard(grace) });
    rounds.pass(10);
    const { thresholds } = rounds.play({ p: hard(grace), q: hard(grace) });
    expect(thresholds.map(({ plugin, confirmed }) => [plugin, confirmed])).toEqual([
      ["p", true],
      ["q", false],
    ]);
  });

  it("don't count the time the agent was not running", () => {
    const rounds = someRounds();
    rounds.play({ p: hard(grace) });
    rounds.pass(5);
    rounds.play({ p: hard(grace) });
    rounds.pass(600);
    rounds.state = resumeState(rounds.state, rounds.now, 600_000);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(false);
    rounds.pass(5);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(true);
  });

  it.each([-100_000, 100_000])("keep going when the wall clock is stepped by %d s", (step) => {
    const rounds = someRounds();
    rounds.play({ p: hard(grace) });
    rounds.pass(5);
    rounds.play({ p: hard(grace) });
    rounds.stepClock(step);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(false);
    rounds.pass(5);
    expect(rounds.play({ p: hard(grace) }).thresholds[0]?.confirmed).toBe(true);
  });
});

describe("who is asked for top pods", () => {
  it("is whose threshold has been met for its grace period: 1 for hard, 0 for soft", () => {
    const rounds = someRounds();
    const input = rounds.input({ h: hard(), s: soft(), n: {}, g: hard({ gracePeriodSeconds: 5 }) });
    expect(prepareRound(input).questions).toEqual([
      { plugin: "h", scope: "memory", topN: 1, candidateUids: null },
      { plugin: "s", scope: "memory", topN: 0, candidateUids: null },
    ]);
  });

  it("is offered only what it named as candidates, as far as those are candidates", () => {
    const rounds = someRounds();
    const of = (candidateUids: string[]) =>
      prepareRound(rounds.input({ p: hard({ candidateUids }) })).questions;
    expect(of(["b", "x"])).toMatchObject([{ candidateUids: ["b"] }]);
    expect(of(["x"])).toEqual([]);
  });

  it("is no pod without a candidate", () => {
    const rounds = new TestRounds([testPod("a", { isStatic: true })]);
    expect(prepareRound(rounds.input({ p: hard() })).questions).toEqual([]);
  });
});

describe("conditions", () => {
  const plugin = { podsCondition: nodeCondition("c") };
  const names = (rounds: TestRounds, plugins: Record<string, TestPlugin>) =>
    rounds.play(plugins).conditions.map(({ name }) => name);

  it("stay for the transition period after they were last met, and no longer", () => {
    const rounds = someRounds();
    rounds.play({ p: plugin });
    rounds.pass(299);
    expect(names(rounds, { p: {} })).toEqual(["c"]);
    rounds.pass(1);
    expect(names(rounds, { p: {} })).toEqual([]);
    expect(rounds.state.conditions).toEqual([]);
  });

  it("are each plugin's own, and merged", () => {
    const rounds = someRounds();
    rounds.play({ p: plugin });
    rounds.pass(200);
    const { conditions } = rounds.play({
      q: { podsCondition: nodeCondition("c", { effects: ["NoExecute"] }) },
    });
    expect(conditions).toEqual([
      {
        target: "node",
        name: "c",
        effects: ["NoExecute", "NoSchedule"],
        plugins: ["p", "q"],
        why: "p reports it; q reports it",
        since: 1_000_000,
      },
    ]);
    rounds.pass(150);
    expect(rounds.play({}).conditions).toMatchObject([{ effects: ["NoExecute"], plugins: ["q"] }]);
  });

  it("of one name in both answers of a plugin add up", () => {
    const { taints } = someRounds({ taintEffects: ["NoSchedule", "NoExecute"] }).play({
      p: {
        ...plugin,
        threshold: { metType: "soft", condition: nodeCondition("c", { effects: ["NoExecute"] }) },
      },
    });
    expect(taints.node.map(({ effect }) => effect)).toEqual(["NoExecute", "NoSchedule"]);
  });

  it("of a threshold count only while that is met", () => {
    const rounds = someRounds();
    const threshold = { condition: nodeCondition("c") };
    expect(names(rounds, { p: { threshold: { ...threshold, metType: "none" } } })).toEqual([]);
    expect(names(rounds, { p: { threshold: { ...threshold, metType: "soft" } } })).toEqual(["c"]);
  });

  it("are not stripped after a restart before their plugins had time to come back", () => {
    const rounds = someRounds();
    rounds.play({ p: plugin });
    rounds.pass(3600);
    rounds.state = resumeState(rounds.state, rounds.now, 3_600_000);
    expect(names(rounds, {})).toEqual(["c"]);
    rounds.pass(300);
    expect(names(rounds, {})).toEqual([]);
  });

  it("don't grow without bound under a plugin that makes up names", () => {
    const rounds = someRounds();
    for (let round = 0; round < 40; round++) {
      rounds.play({ p: { podsCondition: nodeCondition(`c${round}`) }, q: plugin });
      rounds.pass(5);
    }
    expect(rounds.state.conditions.filter((condition) => condition.plugin === "p")).toHaveLength(16);
    expect(rounds.state.conditions.some(({ name }) => name === "c39")).toBe(true);
    expect(rounds.state.conditions.some((condition) => condition.plugin === "q")).toBe(true);
  });
});

describe("terminating victims", () => {
  it("put their own pressure on hold until they are deleted, and no other", () => {
    const rounds = someRounds();
    expect(namesOf(rounds.play({ p: hard() }).victims)).toEqual(["a"]);
    rounds.pass(5);
    rounds.change("a", { deletionTimestamp: rounds.now });
    const next = { ...hard(), top: ["b"] };
    const held = rounds.play({ p: next });
    expect(held.victims).toEqual([]);
    expect(held.thresholds).toMatchObject([{ held: { reason: "pendingRelease" } }]);
    rounds.pass(5);
    rounds.remove("a");
    expect(namesOf(rounds.play({ p: next }).victims)).toEqual(["b"]);
  });

  it("are remembered with all it takes to continue after a restart", () => {
    const rounds = someRounds();
    const plugin = { pods: [evictPod("a", { force: true, gracePeriodSeconds: 5 })] };
    rounds.play({ p: plugin });
    expect(rounds.state.pending).toEqual([
      {
        uid: "a",
        namespace: "default",
        name: "a",
        plugin: "p",
        scope: "force",
        kind: "forced",
        source: "evictPods",
        reason: "memory is low",
        gracePeriodSeconds: 5,
        since: 1_000_000,
        acceptedAt: null,
        deadline: null,
      },
    ]);
    rounds.accept("a");
    rounds.pass(10);
    rounds.state = resumeState(rounds.state, rounds.now, 10_000);
    expect(rounds.play({ p: plugin }).refusalCounts).toEqual({ pending: 1 });
  });

  it("put their plugin's pressure on hold under any scope, and a cooldown only its scope", () => {
    const rounds = someRounds({ cooldownMs: 60_000 });
    rounds.play({ p: hard() });
    const renamed = { ...hard({ scope: "cpu" }), top: ["b"] };
    expect(rounds.play({ p: renamed }).thresholds).toMatchObject([{ held: { reason: "pendingRelease" } }]);
    rounds.remove("a");
    expect(namesOf(rounds.play({ p: renamed }).victims)).toEqual(["b"]);
  });

  it("let another plugin's pressure take its own", () => {
    const rounds = someRounds();
    rounds.play({ p: hard() });
    expect(namesOf(rounds.play({ p: hard(), q: { ...hard(), top: ["b"] } }).victims)).toEqual(["b"]);
  });

  it("put each plugin's pressure that requested the pod on hold, also after a restart, and each has its cooldown", () => {
    const rounds = someRounds({ cooldownMs: 60_000 });
    const q = hard({ scope: "disk" });
    expect(namesOf(rounds.play({ p: hard(), q }).victims)).toEqual(["a"]);
    rounds.accept("a");
    rounds.state = resumeState(structuredClone(rounds.state), rounds.now, 0);
    const plugins = { p: hard(), q: { ...q, top: ["b"] } };
    expect(rounds.play(plugins).thresholds.map(({ held }) => held?.reason)).toEqual([
      "pendingRelease",
      "pendingRelease",
    ]);
    rounds.remove("a");
    expect(rounds.play(plugins).thresholds.map(({ held }) => held?.reason)).toEqual(["cooldown", "cooldown"]);
    rounds.pass(60);
    expect(namesOf(rounds.play({ q: plugins.q }).victims)).toEqual(["b"]);
  });

  it("have the reason of the request that counts most", () => {
    const rounds = someRounds({ cooldownMs: 60_000 });
    rounds.play({ p: hard() });
    rounds.remove("a");
    rounds.change("b", { softEvictNotify: true });
    const { ranking } = rounds.play({ p: hard(), q: { pods: [evictPod("b")] } });
    expect(ranking).toMatchObject([{ name: "b", kind: "soft", why: expect.stringContaining("soft") }]);
  });

  it("are not chosen again while they are still there", () => {
    const rounds = someRounds();
    rounds.play({ p: forced("a") });
    rounds.pass(5);
    const decision = rounds.play({ p: forced("a", "b") });
    expect(namesOf(decision.victims)).toEqual(["b"]);
    expect(decision.refusalCounts).toEqual({ pending: 1 });
  });

  it("that hang put pressures on hold no longer than their grace period and a margin", () => {
    const rounds = someRounds();
    rounds.play({ p: hard() });
    rounds.accept("a");
    rounds.change("a", { deletionTimestamp: rounds.now });
    const next = { ...hard(), top: ["b"] };
    rounds.pass(59);
    expect(rounds.play({ p: next }).victims).toEqual([]);
    rounds.pass(1);
    expect(namesOf(rounds.play({ p: next }).victims)).toEqual(["b"]);
  });

  it("with a grace period of days put pressures on hold no longer than the longest release", () => {
    const rounds = someRounds();
    rounds.change("a", { gracePeriodSeconds: 7 * 86_400 });
    rounds.play({ p: hard() });
    rounds.accept("a");
    rounds.change("a", { deletionTimestamp: rounds.now });
    rounds.pass(600);
    expect(namesOf(rounds.play({ p: { ...hard(), top: ["b"] } }).victims)).toEqual(["b"]);
  });

  it("leave a cooldown behind", () => {
    const rounds = someRounds({ cooldownMs: 20_000 });
    rounds.play({ p: hard() });
    rounds.pass(5);
    rounds.remove("a");
    const next = { ...hard(), top: ["b"] };
    expect(rounds.play({ p: next }).thresholds[0]?.held).toEqual({
      reason: "cooldown",
      until: rounds.now + 20_000,
    });
    rounds.pass(19);
    expect(rounds.play({ p: next }).victims).toEqual([]);
    rounds.pass(1);
    expect(namesOf(rounds.play({ p: next }).victims)).toEqual(["b"]);
  });

  it("whose eviction failed are left alone for a while, and the next one goes", () => {
    const rounds = someRounds();
    const plugin = { pods: [evictPod("a"), evictPod("b")] };
    expect(namesOf(rounds.play({ p: plugin }).victims)).toEqual(["a"]);
    rounds.pass(5);
    rounds.outcomes = [
      { uid: "a", result: "failed", message: "429: PodDisruptionBudget default/a allows no disruption now" },
    ];
    const decision = rounds.play({ p: plugin });
    expect(namesOf(decision.victims)).toEqual(["b"]);
    expect(decision.refusals[0]?.message).toContain(
      "429: PodDisruptionBudget default/a allows no disruption now",
    );
    expect(decision.state.recent.map(({ uid }) => uid)).toEqual(["b"]);
    rounds.pass(60);
    rounds.remove("b");
    expect(namesOf(rounds.play({ p: plugin }).victims)).toEqual(["a"]);
  });

  it("re-created under their name are other pods", () => {
    const rounds = someRounds();
    rounds.play({ p: forced("a") });
    rounds.change("a", { uid: "a2" });
    expect(rounds.play({ p: forced("a") }).refusalCounts).toEqual({ unknownPod: 1 });
  });
});

describe("withdrawals", () => {
  it.each<[string, TestPlugin, TestPlugin | undefined, boolean]>([
    ["of a pod no longer named", forced("a"), forced(), true],
    ["of a threshold no longer met", hard(), {}, true],
    ["not of a threshold under another scope", hard(), { ...hard({ scope: "cpu" }), top: ["b"] }, false],
    ["not of a pod that its plugin forces for another reason now", hard(), hard({ scope: "cpu" }), false],
    ["of a hard threshold that is only soft now", hard(), soft(), true],
    ["not of a threshold that now prefers another pod", hard(), { ...hard(), top: ["b"] }, false],
    [
      "not for a plugin that fails",
      hard(),
      { threshold: "connection refused", pods: "connection refused" },
      false,
    ],
    ["not for a disconnected plugin", forced("a"), undefined, false],
  ])("%s", (_, before, after, withdrawn) => {
    const rounds = someRounds();
    rounds.play({ p: before });
    rounds.pass(5);
    const { withdrawals } = rounds.play(after ? { p: after } : {});
    expect(withdrawals.map(({ name, stage }) => [name, stage])).toEqual(withdrawn ? [["a", "started"]] : []);
  });

  it("don't touch a pod that another plugin forces too, nor one that is terminating already", () => {
    const rounds = someRounds();
    rounds.play({ p: forced("a") });
    expect(rounds.play({ p: {}, q: forced("a") }).withdrawals).toEqual([]);
    rounds.change("a", { deletionTimestamp: rounds.now });
    expect(rounds.play({ p: {} }).withdrawals).toEqual([]);
  });

  it("call back what was protected meanwhile", () => {
    const rounds = someRounds();
    rounds.policy.skip.labelKeys = ["keep"];
    rounds.play({ p: forced("a") });
    rounds.change("a", { labels: { keep: "" } });
    expect(rounds.play({ p: forced("a") }).withdrawals).toMatchObject([
      { name: "a", reason: "the pod is protected since the decision: label keep" },
    ]);
  });

  it("call back what a plugin asked for that is in dry run now", () => {
    const rounds = someRounds();
    rounds.play({ p: forced("a") });
    rounds.policy.dryRunPlugins = ["p"];
    expect(rounds.play({ p: forced("a") }).withdrawals).toMatchObject([
      { name: "a", reason: "the plugin is in dry run" },
    ]);
  });

  it("remove queued pods that no plugin requests any longer", () => {
    const rounds = someRounds({ burst: 0 });
    expect(rounds.play({ p: forced("a", "b") }).state.queue).toHaveLength(2);
    rounds.pass(5);
    const decision = rounds.play({ p: forced("b") });
    expect(decision.withdrawals).toMatchObject([{ name: "a", stage: "queued" }]);
    expect(decision.state.queue).toMatchObject([{ name: "b", since: 1_000_000 }]);
  });

  it("make room for the pod again once the withdrawal is done", () => {
    const rounds = someRounds();
    rounds.play({ p: forced("a") });
    rounds.play({ p: {} });
    rounds.outcomes = [{ uid: "a", result: "withdrawn", message: "" }];
    const decision = rounds.play({ p: {} });
    expect(decision.state).toMatchObject({ pending: [], recent: [], paused: [] });
    expect(namesOf(rounds.play({ p: forced("a") }).victims)).toEqual(["a"]);
  });
});

describe("limits in a time window", () => {
  const owner = (uid: string) => ({ kind: "ReplicaSet", name: uid, uid });
  const limited = (perNamespace: number | null, perOwner: number | null) =>
    new TestRounds(
      [
        testPod("a", { owner: owner("web") }),
        testPod("b", { owner: owner("web") }),
        testPod("c", { namespace: "other", owner: owner("db") }),
      ],
      { limits: { windowMs: 60_000, perNode: null, perNamespace, perOwner } },
    );
  const all: TestPlugin = {
    pods: ["a", "b", "c"].map((name) =>
      evictPod(name, { force: true, pod: { uid: name, namespace: "", name } }),
    ),
  };

  it.each([
    ["namespace", 1, null, "namespaceLimit"],
    ["owner", null, 1, "ownerLimit"],
  ] as const)("count evictions by %s, also those of one round", (_, perNamespace, perOwner, reason) => {
    const rounds = limited(perNamespace, perOwner);
    const first = rounds.play({ p: all });
    expect(namesOf(first.victims)).toEqual(["a", "c"]);
    expect(first.refusalCounts).toEqual({ [reason]: 1 });
    rounds.remove("a", "c");
    rounds.pass(59);
    expect(rounds.play({ p: all }).victims).toEqual([]);
    rounds.pass(1);
    expect(namesOf(rounds.play({ p: all }).victims)).toEqual(["b"]);
  });

  it("forget evictions that no limit and no cooldown looks at any longer", () => {
    const rounds = limited(1, null);
    rounds.policy.cooldownMs = 90_000;
    rounds.play({ p: all });
    rounds.remove("a", "c");
    rounds.pass(60);
    expect(rounds.play({}).state.recent.map(({ uid, releasedAt }) => [uid, releasedAt])).toEqual([
      ["a", 1_060_000],
      ["c", 1_060_000],
    ]);
    rounds.pass(90);
    expect(rounds.play({}).state.recent).toEqual([]);
  });

  it("let the next soft candidate go", () => {
    const rounds = limited(0, null);
    rounds.policy.limits.perNamespace = 1;
    rounds.play({ p: forced("a") });
    const plugin = {
      pods: [evictPod("b"), evictPod("c", { pod: { uid: "c", namespace: "other", name: "c" } })],
    };
    expect(namesOf(rounds.play({ p: plugin }).victims)).toEqual(["c"]);
  });
});

import { describe, expect, it } from "vitest";
import {
  evictPod,
  named,
  type TestPlugin,
  TestRounds,
  testPod,
} from "../../../agent/src/eviction/testing/rounds.ts";
import type { EvictionPolicy } from "./policy.ts";

const hard = (changes: NonNullable<Exclude<TestPlugin["threshold"], string>> = {}): TestPlugin => ({
  threshold: { metType: "hard", ...changes },
});
const strangers: TestPlugin["top"] = ["stranger"];

/** Plays a round for each answer to GetTopEvictionPods; the victims and the reasons why none may be selected. */
function play(tops: TestPlugin["top"][], plugin = hard(), policy: Partial<EvictionPolicy> = {}) {
  const rounds = new TestRounds([testPod("a"), testPod("b", { priority: 1 })], policy);
  return tops.map((top) => {
    const { victims, thresholds } = rounds.play({ p: { ...plugin, ...(top === undefined ? {} : { top }) } });
    rounds.pass(5);
    return victims[0]?.name ?? thresholds[0]?.unserved?.reason;
  });
}

describe("a hard threshold whose plugin names no pod that can be evicted", () => {
  const late = { failure: "deadline of 5 s exceeded", late: true } as const;

  it.each<[string, TestPlugin["top"][], (string | undefined)[]]>([
    [
      "names only pods that can't be evicted: the ranking selects one in the third round",
      [strangers, strangers, strangers],
      ["namedIneligible", "namedIneligible", "a"],
    ],
    ["fails", ["refused", "refused", "refused", "refused"], ["failed", "failed", "failed", "failed"]],
    ["names none", [[], [], [], []], ["namedNone", "namedNone", "namedNone", "namedNone"]],
    [
      "fails in between: the count starts again",
      [strangers, strangers, "refused", strangers, strangers, strangers],
      ["namedIneligible", "namedIneligible", "failed", "namedIneligible", "namedIneligible", "a"],
    ],
    [
      "names none in between: the count starts again",
      [strangers, strangers, [], strangers],
      ["namedIneligible", "namedIneligible", "namedNone", "namedIneligible"],
    ],
    ["names a pod that can be evicted besides", [["stranger", "b"]], ["b"]],
  ])("%s", (_name, tops, expected) => {
    expect(play(tops)).toEqual(expected);
  });

  it("is late: that is neither a failure nor a vote", () => {
    const rounds = new TestRounds([testPod("a")]);
    for (let count = 0; count < 5; count++) {
      const decision = rounds.play({ p: { ...hard(), top: late } });
      expect(decision.victims).toEqual([]);
      expect(decision.thresholds[0]?.unserved).toMatchObject({ reason: "late", message: late.failure });
      expect(decision.failures).toEqual([{ plugin: "p", call: "getTopEvictionPods", ...late }]);
    }
  });

  it("has been so since the first of these rounds, whatever the reasons, and no longer once a pod is named", () => {
    const rounds = new TestRounds([testPod("a")]);
    const sinces: (number | undefined)[] = [];
    for (const top of [strangers, "refused", [], ["a"]]) {
      const { thresholds, state } = rounds.play({ p: { ...hard(), top } });
      sinces.push(thresholds[0]?.unserved?.since);
      expect(state.unserved.map(({ since }) => since)).toEqual(
        sinces.slice(-1).flatMap((since) => since ?? []),
      );
      rounds.pass(5);
    }
    expect(sinces).toEqual([1_000_000, 1_000_000, 1_000_000, undefined]);
  });
});

describe("the ranking selects no pod", () => {
  const three = [strangers, strangers, strangers, strangers];

  it.each<[string, TestPlugin, Partial<EvictionPolicy>, string]>([
    ["for a plugin for which it is off", hard(), { fallbackPlugins: ["*", "-p"] }, "fallbackOff"],
    ["for any plugin, where it is off", hard(), { fallbackPlugins: [] }, "fallbackOff"],
    ["for a NUMA node", hard({ scope: "NumaMemory" }), {}, "scopeUnknown"],
    ["for a disk", hard({ scope: "SystemRootfs" }), {}, "scopeUnknown"],
  ])("%s", (_name, plugin, policy, reason) => {
    expect(play(three, plugin, policy)).toEqual([reason, reason, reason, reason]);
  });

  it("but among the candidates that the plugin reported for such a scope", () => {
    const plugin = hard({ scope: "NumaMemory", candidateUids: ["b"] });
    expect(play(three, plugin).slice(0, 3)).toEqual(["namedIneligible", "namedIneligible", "b"]);
  });

  it("for a scope that alternates: three rounds in a row are three of one scope", () => {
    const rounds = new TestRounds([testPod("a")]);
    for (let count = 0; count < 8; count++) {
      const scope = count % 2 === 0 ? "memory" : "pid";
      expect(rounds.play({ p: { ...hard({ scope }), top: strangers } }).victims).toEqual([]);
      rounds.pass(5);
    }
  });
});

it("a pod that the ranking selects has the reason in its decision, with the UID that the plugin named", () => {
  const rounds = new TestRounds([testPod("a")]);
  const top = { pods: [{ ...named("a"), uid: "before" }] };
  const decisions = [1, 2, 3].map(() => rounds.play({ p: { ...hard(), top } }));
  expect(decisions[2]!.victims[0]).toMatchObject({
    name: "a",
    plugin: "p",
    asks: [{ selectedBy: "ranking", fallback: { rounds: 3, namesakeUid: "before" } }],
    reason:
      "selected by Nodekeeper's ranking: p named only pods that can't be evicted in 3 rounds in a row; memory 0.9 > threshold 0.8; p named a pod of this name with another UID, before",
  });
  expect(decisions[2]!.ranking[0]!.why).not.toContain("at the request of");
});

it("a pod that is tried last is not evicted though its plugin keeps naming it: the ranking selects another, and only that", () => {
  const pods = [testPod("free", { priority: 5, labels: { app: "free" } }), testPod("guarded")];
  const rounds = new TestRounds(pods, { failedEvictionPauseMs: 60_000 });
  const play = () => rounds.play({ p: { ...hard(), top: ["guarded"] } });
  expect(play().victims).toMatchObject([{ name: "guarded" }]);
  const budget = { name: "default/guarded", currentHealthy: 1, desiredHealthy: 1 };
  rounds.outcomes = [{ uid: "guarded", result: "failed", message: "429", budget }];
  rounds.play({ p: { threshold: { metType: "none" } } });
  rounds.pass(61);
  const postponed = play();
  expect(postponed.victims).toEqual([]);
  expect(postponed.refusals).toMatchObject([{ plugin: "p", name: "guarded", reason: "triedLast" }]);
  expect(postponed.ranking.map(({ name, outcome }) => [name, outcome])).toEqual([
    ["guarded", "refused"],
    ["free", "notAsked"],
  ]);
  rounds.pass(5);
  play();
  rounds.pass(5);
  expect(play().victims).toMatchObject([{ name: "free", asks: [{ selectedBy: "ranking" }] }]);
});

it.each([
  ["paused", 5],
  ["triedLast", 61],
] as const)(
  "a pod that can't be evicted now is refused for that reason, and not as one that is tried last: %s",
  (reason, seconds) => {
    const pods = [testPod("free", { priority: 5, labels: { app: "free" } }), testPod("guarded")];
    const rounds = new TestRounds(pods, { failedEvictionPauseMs: 60_000 });
    rounds.play({ p: { ...hard(), top: ["guarded"] } });
    rounds.outcomes = [{ uid: "guarded", result: "failed", message: "429", budget: null }];
    rounds.play({ p: { threshold: { metType: "none" } } });
    rounds.pass(seconds);
    const { refusals } = rounds.play({ p: { ...hard(), top: ["guarded"] } });
    expect(refusals).toMatchObject([{ plugin: "p", name: "guarded", reason }]);
  },
);

it("an eviction in progress is not withdrawn while a plugin names its pod, though the pod is tried last", () => {
  const pods = [testPod("free", { priority: 5, labels: { app: "free" } }), testPod("guarded")];
  const rounds = new TestRounds(pods, { failedEvictionPauseMs: 60_000, cooldownMs: 0 });
  rounds.play({ p: { ...hard(), top: ["guarded"] } });
  rounds.outcomes = [{ uid: "guarded", result: "failed", message: "429", budget: null }];
  rounds.play({});
  rounds.pass(61);
  const forced = { pods: [{ ...evictPod("guarded", { force: true }) }] };
  expect(rounds.play({ a: forced }).victims).toMatchObject([{ name: "guarded" }]);
  rounds.pass(5);
  const { withdrawals } = rounds.play({ a: { pods: [] }, p: { ...hard(), top: ["guarded"] } });
  expect(withdrawals).toEqual([]);
});

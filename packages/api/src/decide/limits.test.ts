import { describe, expect, it } from "vitest";
import { expectNextAfter, forced } from "../../../agent/src/eviction/testing/pressures.ts";
import {
  evictPod,
  namesOf,
  type TestPlugin,
  TestRounds,
  testPod,
} from "../../../agent/src/eviction/testing/rounds.ts";

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
    expectNextAfter(60, rounds, all);
  });

  it("count an eviction from its acceptance, which retries may delay", () => {
    const rounds = limited(1, null);
    rounds.play({ p: all });
    rounds.pass(20);
    rounds.accept("a", "c");
    rounds.remove("a", "c");
    expectNextAfter(60, rounds, all);
  });

  it("count an eviction whose response is lost from its last request, which may have been accepted", () => {
    const rounds = limited(1, null);
    rounds.play({ p: all });
    rounds.send("a", "c");
    rounds.pass(20);
    rounds.send("a", "c");
    rounds.remove("a", "c");
    expectNextAfter(60, rounds, all);
  });

  it("do not count an earlier eviction of the same pod again when a later one is accepted", () => {
    const rounds = limited(null, 2);
    rounds.play({ p: forced("a") });
    const [eviction] = rounds.state.recent;
    rounds.state.recent.unshift({ ...eviction!, at: 1, releasedAt: 2 });
    rounds.pass(20);
    rounds.accept("a");
    expect(rounds.state.recent.map(({ at }) => at)).toEqual([1, rounds.now]);
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

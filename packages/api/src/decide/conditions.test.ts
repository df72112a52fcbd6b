import { describe, expect, it } from "vitest";
import { someRounds } from "../../../agent/src/eviction/testing/pressures.ts";
import {
  nodeCondition,
  type TestPlugin,
  type TestRounds,
} from "../../../agent/src/eviction/testing/rounds.ts";
import { resumeState } from "./state.ts";

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

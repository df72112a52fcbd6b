import { describe, expect, it } from "vitest";
import { forced, hard, soft, someRounds } from "../../../agent/src/eviction/testing/pressures.ts";
import { namesOf, type TestPlugin } from "../../../agent/src/eviction/testing/rounds.ts";
import { resumeState } from "./state.ts";

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

  it("call back the stop of containers once, so that it is not repeated, and count no call that was not sent", () => {
    const rounds = someRounds();
    rounds.play({ p: forced("a") });
    rounds.accept("a");
    rounds.state.pending[0]!.stopsContainers = true;
    expect(rounds.play({ p: {} }).withdrawals).toMatchObject([
      { name: "a", reason: "p no longer requests it" },
    ]);
    expect(rounds.play({ p: {} }).withdrawals).toEqual([]);
    rounds.outcomes = [{ uid: "a", result: "withdrawn", sent: false, stopsContainers: true, message: "" }];
    expect(rounds.play({ p: {} }).state).toMatchObject({ pending: [], recent: [] });
  });

  it("don't touch an eviction that is accepted, nor one that is followed after a restart", () => {
    const rounds = someRounds();
    rounds.play({ p: forced("a") });
    const waiting = rounds.state;
    rounds.accept("a");
    expect(rounds.play({ p: {} }).withdrawals).toEqual([]);
    rounds.state = resumeState(waiting, rounds.now, 0);
    expect(rounds.play({ p: {} }).withdrawals).toEqual([]);
    expect(rounds.play({ p: {} }).withdrawals).toEqual([]);
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

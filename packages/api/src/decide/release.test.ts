import { describe, expect, it } from "vitest";
import { expectNextAfter, forced, hard, someRounds } from "../../../agent/src/eviction/testing/pressures.ts";
import { evictPod, namesOf } from "../../../agent/src/eviction/testing/rounds.ts";
import { resumeState } from "./state.ts";

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

  it("are not evicted again where they are deleted while plugins are asked, and hold up no other pod", () => {
    const rounds = someRounds();
    expect(namesOf(rounds.play({ p: hard() }).victims)).toEqual(["a"]);
    rounds.accept("a");
    rounds.pass(5);
    rounds.outcomes = [{ uid: "a", result: "terminated", sent: true, message: "pod deleted" }];
    const again = { ...hard(), top: ["a"], pods: [evictPod("a", { force: true })] };
    const round = rounds.play({ p: again });
    expect(round.victims).toEqual([]);
    expect(round.refusals).toMatchObject([{ uid: "a", reason: "terminating" }]);
    rounds.outcomes = [{ uid: "a", result: "terminated", sent: true, message: "pod deleted" }];
    expect(namesOf(rounds.play({ p: { ...hard(), top: ["b"] } }).victims)).toEqual(["b"]);
  });

  it("whose containers were stopped still run: they are not called terminating, and the next round offers them again", () => {
    const rounds = someRounds();
    expect(namesOf(rounds.play({ p: hard() }).victims)).toEqual(["a"]);
    rounds.accept("a");
    rounds.pass(5);
    const stop = { sent: true, stopsContainers: true, message: "stopped app" };
    rounds.outcomes = [{ uid: "a", result: "terminated", ...stop }];
    const again = { ...hard(), top: ["a"], pods: [evictPod("a", { force: true })] };
    const round = rounds.play({ p: again });
    expect(round.victims).toEqual([]);
    expect(round.refusals).toMatchObject([{ uid: "a", reason: "stopped" }]);
    expect(round.ranking.find(({ uid }) => uid === "a")?.why).toContain("containers were stopped");
    rounds.pass(5);
    expect(namesOf(rounds.play({ p: again }).victims)).toEqual(["a"]);
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
        selectedAt: 1_000_000,
        sendingAt: null,
        acceptedAt: null,
        deadline: null,
      },
    ]);
    rounds.accept("a");
    rounds.pass(10);
    rounds.state = resumeState(rounds.state, rounds.now, 10_000);
    expect(rounds.play({ p: plugin }).refusalCounts).toEqual({ pending: 1 });
  });

  it.each<[string, { sent: boolean; sentBefore?: boolean }, true | undefined]>([
    ["may still arrive", { sent: true }, true],
    ["may still arrive, after another eviction of it without one", { sent: false, sentBefore: true }, true],
    ["was never sent", { sent: false }, undefined],
  ])("are selected again with what is known of the earlier request: it %s", (_name, known, sentBefore) => {
    const rounds = someRounds();
    const plugin = { pods: [evictPod("a", { force: true })] };
    rounds.play({ p: plugin });
    if (known.sentBefore) {
      rounds.outcomes = [{ uid: "a", result: "withdrawn", sent: true, message: "no response" }];
      rounds.play({ p: plugin });
    }
    rounds.outcomes = [{ uid: "a", result: "withdrawn", ...known, message: "no response" }];
    rounds.play({});
    // Whatever the limits remember, as long as the pod is on the node.
    rounds.policy.limits.windowMs = 1_000;
    rounds.pass(3_600);
    rounds.play({});
    expect(rounds.play({ p: plugin }).victims.map((victim) => victim.sentBefore)).toEqual([sentBefore]);
    expect(rounds.state.pending.map((pending) => pending.sentBefore)).toEqual([sentBefore]);
  });

  it("whose containers were stopped are selected again without a doubt about that request", () => {
    const rounds = someRounds();
    const plugin = { pods: [evictPod("a", { force: true })] };
    rounds.play({ p: plugin });
    rounds.accept("a");
    const stopped = { result: "terminated", sent: true, message: "stopped main" } as const;
    rounds.outcomes = [{ uid: "a", ...stopped, acceptedAt: rounds.now }];
    rounds.play({});
    rounds.pass(60);
    expect(rounds.play({ p: plugin }).victims).toMatchObject([{ uid: "a" }]);
    expect(rounds.state.pending[0]).not.toHaveProperty("sentBefore");
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
    expectNextAfter(60, rounds, next);
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
    expectNextAfter(20, rounds, next);
  });

  it("whose eviction failed are left alone for a while, and the next one is evicted", () => {
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

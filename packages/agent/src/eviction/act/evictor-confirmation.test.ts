import { describe, expect, it } from "vitest";
import { again, type TestEvictor, testEvictors, unavailable, victim } from "../testing/evictor-setup.ts";
import type { KillEnd } from "./killer.ts";

const setup = testEvictors();

describe("confirmation", () => {
  it("reports a pod that is still terminating after its grace period and the margin, and follows it on", async () => {
    const test = setup(["web"]);
    await test.evict(victim("web", { gracePeriodSeconds: 10 }));
    test.terminate("web");
    await test.clock.step(39_999);
    expect(test.outcomes()).toEqual([]);
    await test.clock.step(1);
    expect(test.outcome()).toMatchObject({
      result: "overdue",
      sent: true,
      message: "the pod is still terminating after its grace period and the release margin",
    });
    expect(test.events.at(-1)).toMatchObject({
      reason: "EvictionOverdue",
      message:
        "Evicted by pressure, but the pod is still terminating after its grace period and the release margin",
    });
    await test.clock.step(600_000);
    expect(test.outcomes()).toEqual([]);
    test.remove("web");
    expect(test.outcomes()).toEqual(["web terminated"]);
    expect(test.events).toHaveLength(2);
  });

  it("reads a terminating pod that the watch does not have at most once a second", async () => {
    const test = setup(["web"]);
    test.unwatched.add("web");
    test.onKill = async () => {
      test.terminate("web");
      return { kind: "accepted", message: "accepted" };
    };
    await test.evict(victim("web"));
    test.reads.length = 0;
    await test.clock.step(10_000);
    expect(test.reads.length).toBeGreaterThan(0);
    expect(test.reads.length).toBeLessThanOrEqual(10);
    test.pods.delete("web");
    await test.clock.step(1_000);
    expect(test.outcomes()).toEqual(["web terminated"]);
  });

  it("of a pod that was accepted and is not terminating fails", async () => {
    const test = setup(["web"]);
    await test.evict(victim("web", { gracePeriodSeconds: 10 }));
    await test.clock.step(40_000);
    expect(test.outcome()).toMatchObject({ result: "failed", sent: true });
  });

  it("has its deadline from the moment it is accepted", async () => {
    const test = setup(["web"]);
    const accepted: unknown[] = [];
    test.ledger.onProgress((progress) => accepted.push(progress) > 0);
    test.onKill = async () =>
      test.clock.monotonic() < 10_000
        ? again({ retryAfterMs: 10_000 })
        : { kind: "accepted", message: "accepted" };
    await test.evict(victim("web", { gracePeriodSeconds: 20 }));
    test.terminate("web");
    test.put("web");
    await test.clock.step(10_000);
    expect(accepted).toEqual([
      { uid: "web", stage: "sending", at: 0, deadline: null },
      { uid: "web", stage: "sending", at: 10_000, deadline: null },
      { uid: "web", stage: "accepted", at: 10_000, deadline: 60_000 },
    ]);
  });

  it.each([
    ["requested", { gracePeriodSeconds: 3_600 }, {}],
    ["with which it terminates", {}, { deletionGracePeriodSeconds: 3_600 }],
  ])(
    "calls no pod overdue before the grace period that was %s has passed",
    async (_name, changes, metadata) => {
      const test = setup(["web"]);
      await test.evict(victim("web", changes));
      test.terminate("web", metadata);
      await test.clock.step(3_629_999);
      expect(test.outcomes()).toEqual([]);
      expect(test.events.map(({ reason }) => reason)).toEqual(["Evicted"]);
      await test.clock.step(1);
      expect(test.outcomes()).toEqual(["web overdue"]);
    },
  );

  it("finds a pod that was deleted without a watch event", async () => {
    const test = setup(["web"]);
    await test.evict(victim("web"));
    test.pods.delete("web");
    await test.clock.step(60_000);
    expect(test.outcome()).toMatchObject({
      result: "terminated",
      message: "pod deleted",
    });
  });

  it("waits while the API server is unreachable", async () => {
    const test = setup(["web"]);
    await test.evict(victim("web"));
    test.onRead = async () => {
      throw unavailable;
    };
    await test.clock.step(600_000);
    expect(test.outcomes()).toEqual([]);
    const steps = test.steps();
    expect(steps.at(-1)).toBe("the pod can't be read: GET: connection refused");
    // Once for all the times.
    expect(steps).toHaveLength(3);
    test.onRead = () => undefined;
    test.pods.delete("web");
    await test.clock.step(10_000);
    expect(test.outcomes()).toEqual(["web terminated"]);
  });

  it("counts a pod that was deleted during the call as deleted", async () => {
    const test = setup(["web"]);
    test.onKill = async () => {
      test.remove("web");
      return { kind: "accepted", message: "accepted" };
    };
    await test.evict(victim("web"));
    expect(test.outcomes()).toEqual(["web terminated"]);
  });

  it("follows a killer that reports the end itself", async () => {
    const test = setup(["web"]);
    let end = (_end: KillEnd) => {};
    test.onKill = async () => ({
      kind: "accepted",
      message: "StopContainer app, grace period 30 s",
      ended: new Promise((resolve) => {
        end = resolve;
      }),
    });
    await test.evict(victim("web"));
    await test.clock.step(300_000);
    expect(test.outcomes()).toEqual([]);
    end({ kind: "stopped", message: "stopped app" });
    await test.clock.step(0);
    expect(test.outcome()).toMatchObject({ uid: "web", result: "terminated", message: "stopped app" });
  });
});

describe("withdrawal", () => {
  const withdrawal = {
    uid: "web",
    namespace: "default",
    name: "web",
    stage: "started",
    reason: "no longer met",
  } as const;

  it("stops what was not sent, at once", async () => {
    const test = setup(["web"]);
    test.onKill = async () => again({ retryAfterMs: 5_000 });
    await test.evict(victim("web"));
    test.evictor.withdraw([withdrawal]);
    test.evictor.withdraw([withdrawal]);
    await test.clock.step(0);
    expect(test.outcomes()).toEqual(["web withdrawn"]);
    expect(test.steps().filter((step) => step.startsWith("withdrawn"))).toHaveLength(1);
    await test.clock.step(60_000);
    expect(test.killed()).toHaveLength(1);
  });

  it("lets what was sent continue", async () => {
    const test = setup(["web"]);
    await test.evict(victim("web"));
    test.evictor.withdraw([withdrawal]);
    test.remove("web");
    expect(test.outcomes()).toEqual(["web terminated"]);
  });

  it.each([
    ["is terminating", (test: TestEvictor) => test.terminate("web"), []],
    ["is untouched", () => {}, ["web withdrawn"]],
    ["is deleted", (test: TestEvictor) => void test.pods.delete("web"), ["web unknown"]],
  ])("after a try without an answer looks first: the pod %s", async (_name, change, outcomes) => {
    const test = setup(["web"]);
    test.onKill = async () => again({ maybeSent: true });
    await test.evict(victim("web"));
    change(test);
    test.evictor.withdraw([withdrawal]);
    await test.clock.step(0);
    expect(test.outcomes()).toEqual(outcomes);
    expect(test.killed()).toHaveLength(1);
  });

  it("of a pod that is not evicted is ignored", async () => {
    const test = setup(["web"]);
    test.start();
    test.evictor.withdraw([withdrawal]);
    await test.clock.step(0);
    expect(test.outcomes()).toEqual([]);
  });
});

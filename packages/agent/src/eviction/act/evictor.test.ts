import { describe, expect, it } from "vitest";
import { again, pending, type TestEvictor, testEvictors, victim } from "../testing/evictor-setup.ts";

const setup = testEvictors();

describe("an eviction", () => {
  it("is sent once with the pod's UID and its own grace period, and ends when the watch no longer has the pod", async () => {
    const test = setup(["web"]);
    await test.evict(victim("web"));
    expect(test.kills).toMatchObject([
      { pod: { uid: "web" }, gracePeriodSeconds: null, ownGracePeriodSeconds: 30 },
    ]);
    expect(test.outcomes()).toEqual([]);
    expect(test.events).toMatchObject([
      {
        reason: "Evicted",
        message: "Evicted by pressure: memory 0.9 > threshold 0.8",
        regarding: { kind: "Pod", namespace: "default", name: "web", uid: "web" },
      },
    ]);

    test.terminate("web");
    await test.clock.step(20_000);
    test.remove("web");
    expect(test.outcomes()).toEqual(["web terminated"]);
    expect(test.steps()).toEqual(["eviction started", "POST eviction: accepted", "pod deleted"]);
    await test.clock.step(120_000);
    expect(test.killed()).toEqual(["web"]);
  });

  it("that is in progress is not started again", async () => {
    const test = setup(["web"]);
    await test.evict(victim("web"));
    await test.evict(victim("web"));
    test.evictor.resume([pending("web")]);
    await test.clock.step(0);
    expect(test.killed()).toEqual(["web"]);
  });

  it("that is gone is forgotten, because a watch whose connection is half open still has it", async () => {
    const test = setup(["evicted", "deleted", "recreated", "refused", "finished"]);
    await test.evict(victim("evicted"));
    for (const name of ["evicted", "deleted"]) test.pods.delete(name);
    test.put("recreated", { metadata: { uid: "other" } });
    test.put("finished", { status: { phase: "Succeeded" } });
    test.onKill = async () => ({ kind: "failed", message: "refused" });
    await test.evict(victim("deleted"), victim("recreated"), victim("refused"), victim("finished"));
    await test.clock.step(120_000);
    expect(test.forgotten.sort()).toEqual(["deleted", "evicted", "recreated"]);
  });

  it.each<[string, (test: TestEvictor) => void, string, string]>([
    [
      "is no more",
      (test) => test.pods.delete("web"),
      "superseded",
      "pod deleted before its eviction was sent",
    ],
    [
      "was recreated under its name",
      (test) => test.put("web", { metadata: { uid: "other" } }),
      "superseded",
      "pod deleted, and another pod created under its name before its eviction was sent",
    ],
    [
      "has finished",
      (test) => test.put("web", { status: { phase: "Succeeded" } }),
      "superseded",
      "pod finished (Succeeded) before its eviction was sent",
    ],
    [
      "the kubelet evicted",
      (test) => test.put("web", { status: { phase: "Failed", reason: "Evicted" } }),
      "superseded",
      "pod finished (Failed, Evicted) before its eviction was sent",
    ],
    [
      "has become critical",
      (test) => test.put("web", { spec: { priority: 2_000_000_000 } }),
      "failed",
      "pod is protected since the decision: priority 2000000000",
    ],
    [
      "turns out to be a mirror pod",
      (test) => test.put("web", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }),
      "failed",
      "pod is protected since the decision: mirror pods are not evicted",
    ],
    [
      "runs on another node",
      (test) => test.put("web", { spec: { nodeName: "node-2" } }),
      "failed",
      "pod is protected since the decision: node-2",
    ],
  ])("of a pod that %s is not sent", async (_name, change, result, message) => {
    const test = setup(["web"]);
    change(test);
    await test.evict(victim("web"));
    expect(test.kills).toEqual([]);
    expect(test.outcome()).toMatchObject({ uid: "web", result, message, sent: false });
  });

  it("of a pod that another client deletes is only followed: it was not evicted", async () => {
    const test = setup();
    test.terminate("web");
    const progress: unknown[] = [];
    test.ledger.onProgress((step) => progress.push(step) > 0);
    await test.evict(victim("web"));
    expect(test.kills).toEqual([]);
    await test.clock.step(600_000);
    test.remove("web");
    const message = "pod deleted; it was terminating before its eviction was sent";
    expect(test.ledger.takeOutcomes()).toMatchObject([{ result: "superseded", sent: false, message }]);
    expect(progress).toMatchObject([{ stage: "followed" }]);
    expect(test.events).toEqual([]);
    expect(test.ended).toEqual([`not evicted by Nodekeeper: ${message}`]);
    expect(test.evictor.evicted).toBe(0);
  });

  it("is reported as being sent before each request", async () => {
    const test = setup(["web"]);
    const order: string[] = [];
    test.ledger.onProgress(({ stage }) => order.push(stage) > 0);
    test.onKill = async () => {
      order.push("request");
      return order.length < 4 ? again() : { kind: "accepted", message: "accepted" };
    };
    await test.evict(victim("web"));
    await test.clock.step(1_000);
    expect(order).toEqual(["sending", "request", "sending", "request", "accepted"]);
  });

  it("is not sent while it can't be recorded that it is, and states so", async () => {
    const test = setup(["web"]);
    let isKept = false;
    test.ledger.onProgress(() => isKept);
    await test.evict(victim("web"));
    expect(test.kills).toEqual([]);
    expect(test.steps()).toContainEqual(expect.stringMatching(/^not sent: neither the state directory nor/));
    isKept = true;
    await test.clock.step(1_000);
    expect(test.kills).toHaveLength(1);
  });

  it("that no killer can send fails, and the readiness check as well", async () => {
    const test = setup(["web"]);
    test.killer = "containerStop";
    await test.evict(victim("web"));
    expect(test.outcome()).toMatchObject({
      result: "failed",
      message: "the killer containerStop needs a container runtime, and none is configured",
    });
    expect(test.evictor.healthCheck().check()).toMatchObject({ ok: false });
    // Without further evictions the agent would not notice that it was fixed.
    await test.clock.step(10 * 60_000);
    expect(test.evictor.healthCheck().check()).toMatchObject({ ok: true });
  });
});

it("bounds how many evictions are under way", async () => {
  const names = Array.from({ length: 1_005 }, (_, at) => `pod-${at}`);
  const test = setup(names);
  test.onRead = () => undefined;
  await test.evict(...names.map((name) => victim(name)));
  expect(test.outcomes()).toHaveLength(5);
});

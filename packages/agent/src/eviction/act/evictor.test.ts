import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import {
  again,
  noSuchPod,
  pending,
  statusError,
  type TestEvictor,
  testEvictors,
  unavailable,
  victim,
} from "../testing/evictor-setup.ts";
import type { KillEnd, KillResult } from "./killer.ts";

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

  describe("of a pod that changes after each read", () => {
    const conflict = again({ message: "409", isConflict: true });

    it("is sent again at once, with the version of a new read", async () => {
      const test = setup(["web"]);
      let version = 1;
      test.onKill = async () => {
        test.put("web", { metadata: { resourceVersion: `${++version}` } });
        return version < 5 ? conflict : { kind: "accepted", message: "POST eviction: accepted" };
      };
      await test.evict(victim("web"));
      expect(test.kills.map(({ resourceVersion }) => resourceVersion)).toEqual(["1", "2", "3", "4"]);
      expect(test.steps()).toContain("409; the pod is read again");
      test.remove("web");
      expect(test.outcome()).toMatchObject({ result: "terminated" });
    });

    it("is retried after a delay once that was in vain a few times, and fails in the end", async () => {
      const test = setup(["web"]);
      test.onKill = async () => conflict;
      await test.evict(victim("web"));
      expect(test.kills).toHaveLength(6);
      await test.clock.step(60_000);
      expect(test.kills).toHaveLength(8);
      expect(test.outcome()).toMatchObject({ result: "failed", sent: false });
    });

    it("says if the refused request may have used the disruption budget", async () => {
      const test = setup(["web"]);
      const refused = { kind: "failed", message: "429: no disruption now", isBudget: true } as const;
      test.onKill = async () => (test.kills.length === 1 ? conflict : refused);
      await test.evict(victim("web"));
      const message = "429: no disruption now; the request that was answered 409 before may have used it";
      expect(test.outcome()).toMatchObject({ result: "failed", message });
    });

    it("is not sent again if the change was the deletion by another client", async () => {
      const test = setup(["web"]);
      test.onKill = async () => {
        test.terminate("web");
        return conflict;
      };
      await test.evict(victim("web"));
      test.remove("web");
      const message = "pod deleted; it was terminating before its eviction was accepted";
      expect(test.kills).toHaveLength(1);
      expect(test.outcome()).toMatchObject({ result: "superseded", message });
      expect(test.events).toEqual([]);
    });

    it("is not sent again if it became protected", async () => {
      const test = setup(["web"]);
      test.onKill = async () => {
        test.put("web", { spec: { nodeName: "node-2" } });
        return conflict;
      };
      await test.evict(victim("web"));
      expect(test.kills).toHaveLength(1);
      expect(test.outcome()).toMatchObject({ result: "failed", sent: false });
    });
  });

  it("of a pod that another client deletes between two attempts is not an eviction by the agent", async () => {
    const test = setup(["web"]);
    test.onKill = async () => again({ retryAfterMs: 5_000 });
    await test.evict(victim("web"));
    test.remove("web");
    expect(test.outcome()).toMatchObject({
      result: "superseded",
      sent: false,
      message: "pod deleted before its eviction was accepted",
    });
  });

  it.each<[string, object | undefined, string]>([
    ["is absent", undefined, "pod deleted; its request may have been accepted: 503"],
    [
      "names the Eviction API",
      { reason: "EvictionByEvictionAPI", lastTransitionTime: "2023-11-14T22:13:20Z" },
      "pod deleted; its request may have been accepted: 503; its condition DisruptionTarget has been EvictionByEvictionAPI since 2023-11-14T22:13:20.000Z",
    ],
    [
      "names the Eviction API before it was sent",
      { reason: "EvictionByEvictionAPI", lastTransitionTime: "2023-11-14T22:13:18Z" },
      "pod deleted; its request may have been accepted: 503",
    ],
  ])(
    "whose response does not tell whether it was accepted is unknown, whether a condition of the pod %s",
    async (_name, disruption, message) => {
      const test = setup(["web"]);
      test.onKill = async () => {
        const conditions = disruption ? [{ type: "DisruptionTarget", status: "True", ...disruption }] : [];
        const metadata = { deletionTimestamp: "2023-11-14T22:13:20Z" };
        test.put("web", { metadata, status: { conditions } });
        return again({ maybeSent: true });
      };
      await test.evict(victim("web"));
      await test.clock.step(500);
      expect(test.kills).toHaveLength(1);
      expect(test.events).toEqual([]);
      test.remove("web");
      expect(test.outcome()).toMatchObject({ result: "unknown", sent: true, message });
      expect(test.ended).toEqual([`not known whether evicted by Nodekeeper: ${message}`]);
      expect(test.evictor.evicted).toBe(0);
    },
  );

  it.each<[string, (test: TestEvictor) => void, object]>([
    [
      "is deleted before another one is sent",
      (test) => test.remove("web"),
      { result: "unknown", message: "pod deleted; a request of an earlier eviction may have been accepted" },
    ],
    [
      "terminates before another one is sent",
      (test) => test.terminate("web"),
      { result: "unknown", message: "pod deleted; a request of an earlier eviction may have been accepted" },
    ],
    ["stays, and the next one is refused", () => {}, { result: "failed", message: "refused" }],
  ])("of a pod of which an earlier request had no answer, and which %s", async (_name, change, outcome) => {
    const test = setup(["web"]);
    test.onKill = async () => ({ kind: "failed", message: "refused" });
    test.start();
    change(test);
    test.evictor.start([victim("web", { sentBefore: true })]);
    await test.clock.step(0);
    test.remove("web");
    expect(test.outcome()).toMatchObject({ ...outcome, sent: false, sentBefore: true });
    expect(test.ended).toEqual([expect.stringContaining("not known whether evicted by Nodekeeper")]);
  });

  it("of a pod of which an earlier request had no answer is withdrawn at once, and reported as no failure", async () => {
    const test = setup(["web"]);
    test.evictor.start([victim("web", { sentBefore: true })]);
    test.evictor.withdraw([
      { uid: "web", namespace: "default", name: "web", stage: "started", reason: "no longer met" },
    ]);
    test.start();
    await test.clock.step(0);
    expect(test.kills).toEqual([]);
    expect(test.events).toEqual([]);
    expect(test.outcome()).toMatchObject({ result: "withdrawn", sent: false, sentBefore: true });
  });

  it("that was refused is stated to have failed, also if an earlier request had no answer", async () => {
    const test = setup(["web"]);
    test.onKill = async () => ({ kind: "failed", message: "refused" });
    test.start();
    test.evictor.start([victim("web", { sentBefore: true })]);
    await test.clock.step(0);
    expect(test.events).toMatchObject([
      {
        message: expect.stringMatching(
          / failed: refused; a request of an earlier eviction may have been accepted$/,
        ),
      },
    ]);
  });

  it("that was given up without a response is not stated to have failed", async () => {
    const test = setup(["web"]);
    test.onKill = async () => again({ message: "no response", maybeSent: true });
    await test.evict(victim("web"));
    await test.clock.step(60_000);
    const message = "gave up after 3 attempts: no response";
    expect(test.outcome()).toMatchObject({ result: "failed", sent: true, message });
    expect(test.ended).toEqual([`given up, not known whether evicted by Nodekeeper: ${message}`]);
    expect(test.events).toMatchObject([
      {
        reason: "EvictionFailed",
        message: `Eviction requested by pressure was given up, and whether it was accepted is not known: ${message}`,
      },
    ]);
  });

  it.each<[string, KillResult, string, string, string[]]>([
    ["accepted", { kind: "accepted", message: "accepted" }, "terminated", "pod deleted", ["Evicted"]],
    [
      "404",
      { kind: "deleted", seen: "pod deleted" },
      "superseded",
      "pod deleted before its eviction was accepted",
      [],
    ],
    ["409", again({ message: "409" }), "superseded", "pod deleted before its eviction was accepted", []],
    [
      "429",
      { kind: "failed", message: "429", isBudget: true },
      "superseded",
      "pod deleted before its eviction was accepted",
      [],
    ],
    [
      "503",
      again({ maybeSent: true }),
      "unknown",
      "pod deleted; its request may have been accepted: 503",
      [],
    ],
  ])(
    "whose pod is deleted during the call ends by the response: %s",
    async (_name, response, result, message, events) => {
      const test = setup(["web"]);
      const responses = Promise.withResolvers<KillResult>();
      test.onKill = () => responses.promise;
      await test.evict(victim("web"));
      test.remove("web");
      await test.clock.step(0);
      expect(test.outcomes()).toEqual([]);
      responses.resolve(response);
      await test.clock.step(0);
      expect(test.ledger.takeOutcomes()).toMatchObject([{ result, message }]);
      expect(test.events.map(({ reason }) => reason)).toEqual(events);
      await test.clock.step(60_000);
      expect(test.kills).toHaveLength(1);
      expect(test.outcomes()).toEqual([]);
    },
  );

  it.each<[string, KillEnd, string]>([
    ["were stopped", { kind: "stopped", message: "stopped app" }, "terminated"],
    ["may have been stopped", again({ maybeSent: true }), "unknown"],
  ])(
    "by stopping containers is one if they %s, also if the pod is deleted meanwhile",
    async (_name, end, result) => {
      const test = setup(["web"]);
      const ends = Promise.withResolvers<KillEnd>();
      test.onKill = async () => ({ kind: "accepted", message: "StopContainer app", ended: ends.promise });
      await test.evict(victim("web"));
      expect(test.events).toEqual([]);
      test.remove("web");
      expect(test.outcomes()).toEqual([]);
      ends.resolve(end);
      await test.clock.step(0);
      expect(test.outcomes()).toEqual([`web ${result}`]);
      expect(test.events.map(({ reason }) => reason)).toEqual(result === "terminated" ? ["Evicted"] : []);
    },
  );

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

describe("the readiness check", () => {
  const refuse =
    (message: string, isForbidden = false) =>
    async (): Promise<KillResult> => ({
      kind: "failed",
      message,
      isForbidden,
    });

  it("fails after three evictions in a row of which none was accepted, however fast they failed", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const test = setup(names);
    const check = () => test.evictor.healthCheck().check();
    for (const [at, name] of ["a", "b", "c"].entries()) {
      expect(check()).toMatchObject({ ok: true });
      test.onKill = refuse(`reason ${at}`);
      await test.evict(victim(name));
    }
    expect(check()).toEqual({
      ok: false,
      message: "the last 3 evictions failed, none was accepted; the last one: reason 2",
      errorId: "NK1602",
    });
    await test.clock.step(10 * 60_000);
    expect(check()).toMatchObject({ ok: true });
    await test.evict(victim("d"));
    expect(check()).toMatchObject({ ok: false });
    test.onKill = async () => ({ kind: "accepted", message: "accepted" });
    await test.evict(victim("e"));
    expect(check()).toMatchObject({ ok: true });
  });

  it("names a missing right, for which there is no Event for each pod", async () => {
    const test = setup(["a", "b"]);
    test.onKill = refuse("403: grant the agent the right to create pods/eviction", true);
    await test.evict(victim("a"), victim("b"));
    expect(test.outcomes()).toEqual(["a failed", "b failed"]);
    expect(test.events).toEqual([]);
    expect(test.evictor.forbidden).toBe("403: grant the agent the right to create pods/eviction");
    expect(test.evictor.healthCheck().check()).toMatchObject({ ok: false, errorId: "NK1602" });
  });
});

describe("failures on the way", () => {
  it("a budget's refusal ends it, with an Event, and others continue", async () => {
    const test = setup(["web", "db"]);
    test.onKill = async ({ pod }) =>
      pod.name === "web"
        ? {
            kind: "failed",
            message: "429: PodDisruptionBudget default/web allows no disruption now",
            isBudget: true,
          }
        : { kind: "accepted", message: "POST eviction: accepted" };
    await test.evict(victim("web"), victim("db"));
    expect(test.outcome()).toMatchObject({
      uid: "web",
      result: "failed",
      message: expect.stringContaining("429"),
    });
    expect(test.events.map(({ reason }) => reason).sort()).toEqual(["Evicted", "EvictionFailed"]);
    expect(test.evictor.healthCheck().check()).toMatchObject({ ok: true });
  });

  it("is retried after the time in Retry-After, while others are sent", async () => {
    const test = setup(["web", ...Array.from({ length: 20 }, (_, at) => `pod-${at}`)]);
    let isBusy = true;
    test.onKill = async ({ pod }) =>
      isBusy && pod.name !== "web"
        ? again({ retryAfterMs: 10_000 })
        : { kind: "accepted", message: "accepted" };
    await test.evict(...[...test.pods.keys()].filter((name) => name !== "web").map((name) => victim(name)));
    // More than there are workers wait, and none is held by waiting.
    await test.evict(victim("web"));
    expect(test.killed().at(-1)).toBe("web");
    isBusy = false;
    const before = test.kills.length;
    await test.clock.step(9_999);
    expect(test.kills.length).toBe(before);
    await test.clock.step(1);
    expect(test.kills.length).toBe(before + 20);
  });

  it("gives up at once where Retry-After lasts longer than the eviction may", async () => {
    const test = setup(["web"]);
    test.onKill = async () => again({ retryAfterMs: 3_600_000 });
    await test.evict(victim("web"));
    expect(test.outcomes()).toEqual(["web failed"]);
    expect(test.killed()).toHaveLength(1);
  });

  it("is retried with increasing delays while the server throttles, up to a limit", async () => {
    const test = setup(["web"]);
    const times: number[] = [];
    test.onKill = async () => {
      times.push(test.clock.monotonic());
      return again({ isThrottled: true });
    };
    await test.evict(victim("web"));
    await test.clock.step(600_000);
    expect(test.outcomes()).toEqual(["web failed"]);
    const waits = times.slice(1).map((time, at) => time - times[at]!);
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
  });

  it.each([
    ["an error of this pod is tried three times", again(), 3],
    ["a budget that is not counted yet is waited for once", again({ retryAfterMs: 10_000 }), 2],
  ])("%s, then another pod gets its turn", async (_name, result, tries) => {
    const test = setup(["web"]);
    test.onKill = async () => result;
    await test.evict(victim("web"));
    await test.clock.step(12_000);
    expect(test.outcome()).toMatchObject({ uid: "web", result: "failed", sent: false });
    expect(test.killed()).toHaveLength(tries);
  });

  it.each([
    ["a broken connection", unavailable],
    ["a 404 of something else", noSuchPod("web", "namespaces")],
    ["a 404 that is not the API server's", new NodekeeperError("notFound", "404 page not found")],
    ["a deadline", new NodekeeperError("deadline", "no answer")],
    ["throttling", statusError(429, "throttled", {}, 1_000)],
    ["an expired token", statusError(401, "unauthenticated")],
  ])("%s while reading never counts as deleted, and no eviction is sent", async (_name, error) => {
    const test = setup(["web"]);
    test.onRead = async () => {
      throw error;
    };
    await test.evict(victim("web"));
    await test.clock.step(10_000);
    expect(test.kills).toEqual([]);
    expect(test.outcomes()).toEqual([]);
    test.onRead = () => undefined;
    await test.clock.step(15_000);
    expect(test.killed()).toEqual(["web"]);
  });

  it("a missing right fails the readiness check, until an eviction is accepted again", async () => {
    const test = setup(["web"]);
    test.onRead = async () => {
      throw statusError(403, "forbidden");
    };
    await test.evict(victim("web"));
    expect(test.evictor.healthCheck().check()).toMatchObject({
      ok: false,
      message: expect.stringContaining("403"),
      errorId: "NK1602",
    });
    test.onRead = () => undefined;
    await test.clock.step(1_000);
    expect(test.evictor.healthCheck().check()).toMatchObject({ ok: true });
  });

  it("an eviction that is not accepted for a minute fails the readiness check", async () => {
    const test = setup(["web"]);
    test.policy.releaseMarginMs = 600_000;
    const reading = Promise.withResolvers<never>();
    test.onRead = () => reading.promise;
    await test.evict(victim("web"));
    expect(test.evictor.healthCheck().check()).toMatchObject({ ok: true });
    await test.clock.step(61_000);
    expect(test.evictor.healthCheck().check()).toEqual({
      ok: false,
      message: expect.stringMatching(/^the eviction of default\/web has not been accepted for 61 s: ./),
      errorId: "NK1601",
    });
    // The queue waits for the reading under way, which the client's deadline would end.
    reading.reject(unavailable);
  });
});

it("bounds how many evictions are under way", async () => {
  const names = Array.from({ length: 1_005 }, (_, at) => `pod-${at}`);
  const test = setup(names);
  test.onRead = () => undefined;
  await test.evict(...names.map((name) => victim(name)));
  expect(test.outcomes()).toHaveLength(5);
});

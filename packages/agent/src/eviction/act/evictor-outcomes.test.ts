import { describe, expect, it } from "vitest";
import { again, type TestEvictor, testEvictors, victim } from "../testing/evictor-setup.ts";
import type { KillEnd, KillResult } from "./killer.ts";

const setup = testEvictors();

describe("an eviction", () => {
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
    const message = "no success after 3 attempts: no response";
    expect(test.outcome()).toMatchObject({ result: "failed", sent: true, message });
    expect(test.ended).toEqual([`given up, not known whether evicted by Nodekeeper: ${message}`]);
    expect(test.events).toMatchObject([
      {
        reason: "EvictionFailed",
        message: `Eviction requested by pressure was given up; unknown whether it was accepted: ${message}`,
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
});

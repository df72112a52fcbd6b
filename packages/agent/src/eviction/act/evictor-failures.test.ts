import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import {
  again,
  noSuchPod,
  statusError,
  testEvictors,
  unavailable,
  victim,
} from "../testing/evictor-setup.ts";

const setup = testEvictors();

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
});

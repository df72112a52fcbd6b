import { describe, expect, it } from "vitest";
import { statusError, testEvictors, unavailable, victim } from "../testing/evictor-setup.ts";
import type { KillResult } from "./killer.ts";

const setup = testEvictors();

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

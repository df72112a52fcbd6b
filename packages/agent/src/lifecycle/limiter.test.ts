import { FakeClock } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { InspectionLimiter } from "./limiter.ts";
import { completeLifecycleSettings } from "./settings.ts";

const live = new AbortController().signal;
const nothing = () => {};

function createLimiter() {
  const clock = new FakeClock();
  const settings = completeLifecycleSettings({
    initialInspections: 4,
    maxInspections: 16,
    inspectionPatience: 1_000,
    maxOverdue: 3,
  });
  const limiter = new InspectionLimiter({ clock, settings });
  return { clock, limiter };
}

describe("InspectionLimiter", () => {
  it("lets more run while calls are quick, up to its bound, and never more than the limit", async () => {
    const { clock, limiter } = createLimiter();
    let most = 0;
    const work = async () => {
      most = Math.max(most, limiter.running);
      expect(limiter.running).toBeLessThanOrEqual(limiter.limit);
      await clock.sleep(10);
    };
    const all = Promise.all(Array.from({ length: 500 }, () => limiter.run(work, live, nothing)));
    await clock.step(10);
    expect(limiter.limit).toBe(5);
    await clock.step(2_000);
    await all;
    expect([most, limiter.running]).toEqual([16, 0]);
  });

  it("lets fewer run when the runtime slows down, and more again when it recovers", async () => {
    const { clock, limiter } = createLimiter();
    const run = async (count: number, ms: number) => {
      const all = Promise.all(
        Array.from({ length: count }, () => limiter.run(() => clock.sleep(ms), live, nothing)),
      );
      await clock.step(count * ms);
      await all;
    };
    await run(200, 10);
    expect(limiter.limit).toBe(16);
    await run(100, 200);
    const slow = limiter.limit;
    expect(slow).toBeLessThan(8);
    await run(200, 10);
    expect(limiter.limit).toBeGreaterThan(slow);
  });

  it("gives the place of a call that hangs to the next one, until too many hang", async () => {
    const { clock, limiter } = createLimiter();
    const overdue: number[] = [];
    const calls = Array.from({ length: 8 }, (_, at) =>
      limiter
        .run(
          () => clock.sleep(60_000),
          live,
          () => overdue.push(at),
        )
        .then(
          () => "answered",
          (error: Error) => error.message,
        ),
    );
    await clock.step(1_000);
    expect(overdue).toEqual([0, 1, 2, 3]);
    expect(await calls[7]).toContain("calls to the runtime have no response");
    await clock.step(60_000);
    expect(
      (await Promise.all(calls)).filter((result) => result === "answered").length,
    ).toBeGreaterThanOrEqual(4);
    expect([limiter.running, limiter.overdue]).toEqual([0, 0]);
  });
});

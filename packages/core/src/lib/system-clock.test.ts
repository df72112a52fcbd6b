import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "./system-clock.ts";

describe("systemClock", () => {
  it("does not fire at once what is further off than setTimeout can count", async () => {
    let isFired = false;
    const timer = systemClock.after(2 ** 40, () => {
      isFired = true;
    });
    await systemClock.sleep(5);
    timer.cancel();
    expect(isFired).toBe(false);
  });

  describe("with timers that fire early", () => {
    afterEach(() => vi.restoreAllMocks());

    // Like Node's timers, which count whole milliseconds.
    const timersThatAre = (earlyMs: number) => {
      let now = 1_000.9;
      const waits: number[] = [];
      let next: (() => void) | undefined;
      vi.spyOn(performance, "now").mockImplementation(() => now);
      vi.spyOn(globalThis, "setTimeout").mockImplementation(((fire: () => void, ms: number) => {
        waits.push(ms);
        next = () => {
          now += Math.max(ms - earlyMs, 0.1);
          fire();
        };
        return { id: waits.length };
      }) as unknown as typeof setTimeout);
      const fire = () => {
        const due = next;
        next = undefined;
        due?.();
        return due !== undefined;
      };
      return { waits, fire, now: () => now };
    };

    it.each([0, 0.3, 1, 1.9])("by %d ms, calls back once, when the time has passed", (earlyMs) => {
      const timers = timersThatAre(earlyMs);
      const calledAt: number[] = [];
      systemClock.after(7.6, () => calledAt.push(systemClock.monotonic()));
      while (timers.fire());
      expect(calledAt).toHaveLength(1);
      expect(calledAt[0]).toBeGreaterThanOrEqual(1_000.9 + 7.6);
      expect(calledAt[0]).toBeLessThan(1_000.9 + 7.6 + 2);
    });

    it("waits on where the time is longer than setTimeout can count", () => {
      const timers = timersThatAre(0);
      let calledAt: number | undefined;
      systemClock.after(2 ** 32, () => {
        calledAt = timers.now();
      });
      while (timers.fire());
      expect(timers.waits.length).toBeGreaterThan(2);
      expect(calledAt).toBeGreaterThanOrEqual(1_000.9 + 2 ** 32);
    });

    it("does not call back once cancelled, also while it waits on", () => {
      const timers = timersThatAre(1);
      const cleared = vi.spyOn(globalThis, "clearTimeout").mockImplementation(() => {});
      const timer = systemClock.after(5, () => expect.fail("cancelled"));
      timers.fire();
      expect(timers.waits).toEqual([5, 1]);
      timer.cancel();
      expect(cleared).toHaveBeenLastCalledWith({ id: 2 });
    });
  });

  describe("with timers of two seconds and more", () => {
    let startedAt = 0;
    let calls: string[] = [];
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
      startedAt = performance.now();
      calls = [];
    });
    afterEach(() => {
      vi.clearAllTimers();
      vi.useRealTimers();
    });
    const note = (name: string) => () => calls.push(`${name} at ${performance.now() - startedAt}`);
    // A shorter timer, to whose time a millisecond is added.
    const wakeUpAt = (ms: number) => systemClock.after(ms - 1 - (performance.now() - startedAt), () => {});

    it.each<[string, number[], string]>([
      ["fires at the end of its slack if no other timer does", [], "slow at 5250"],
      ["fires with a timer that fires when it is due", [5_000], "slow at 5000"],
      ["fires with the first of several", [5_100, 5_200], "slow at 5100"],
      ["does not fire with one that fires before", [4_999], "slow at 5250"],
    ])("%s", (_what, others, expected) => {
      systemClock.after(5_000, note("slow"));
      vi.advanceTimersByTime(4_000);
      for (const ms of others) wakeUpAt(ms);
      vi.advanceTimersByTime(6_000);
      expect(calls).toEqual([expected]);
    });

    it("fires all that are due in one wake-up, in the order of their time", () => {
      systemClock.after(5_200, note("c"));
      systemClock.after(5_000, note("a"));
      systemClock.after(5_100, note("b"));
      systemClock.after(5_300, note("d"));
      vi.advanceTimersByTime(10_000);
      expect(calls).toEqual(["a at 5250", "b at 5250", "c at 5250", "d at 5550"]);
    });

    it("does not fire one that another callback cancels", () => {
      systemClock.after(5_000, () => cancelled.cancel());
      const cancelled = systemClock.after(5_100, () => expect.fail("cancelled"));
      vi.advanceTimersByTime(10_000);
      expect(vi.getTimerCount()).toBe(0);
    });

    it("fires the others if a callback throws", () => {
      systemClock.after(5_000, () => {
        throw new Error("a defect");
      });
      systemClock.after(5_100, note("b"));
      expect(() => vi.advanceTimersByTime(10_000)).toThrow("a defect");
      vi.advanceTimersByTime(10_000);
      expect(calls).toEqual(["b at 5350"]);
    });
  });

  it("moves forward", async () => {
    const before = systemClock.monotonic();
    await systemClock.sleep(2);
    expect(systemClock.monotonic()).toBeGreaterThan(before);
    const [earliest, now, latest] = [Date.now(), systemClock.now(), Date.now()];
    expect(now).toBeGreaterThanOrEqual(earliest);
    expect(now).toBeLessThanOrEqual(latest);
  });
});

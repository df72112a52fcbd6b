import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createSystemClock, systemClock } from "./system-clock.ts";

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

    // Node's timers count whole milliseconds, so that they may fire early.
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
    let clock = createSystemClock();
    let startedAt = 0;
    let calls: string[] = [];
    beforeEach(() => {
      vi.useFakeTimers({
        toFake: ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "performance"],
      });
      clock = createSystemClock();
      startedAt = performance.now();
      calls = [];
    });
    afterEach(() => void vi.useRealTimers());

    // A fake immediate takes a millisecond.
    const note = (name: string) =>
      calls.push(`${name} at ${Math.floor((performance.now() - startedAt) / 10) * 10}`);
    const after = (ms: number, name: string) => clock.after(ms, () => note(name));
    // A shorter timer, to whose time a millisecond is added.
    const wakeUpAt = (ms: number, work = () => {}) =>
      clock.after(ms - 1 - (performance.now() - startedAt), work);

    it.each<[string, number[], string]>([
      ["fires at the end of its slack if no other timer does", [], "slow at 5250"],
      ["fires with a timer that fires when it is due", [5_000], "slow at 5000"],
      ["fires with the first of several", [5_100, 5_200], "slow at 5100"],
      ["does not fire with one that fires before", [4_999], "slow at 5250"],
    ])("%s", async (_what, others, expected) => {
      after(5_000, "slow");
      await vi.advanceTimersByTimeAsync(4_000);
      for (const ms of others) wakeUpAt(ms);
      await vi.advanceTimersByTimeAsync(6_000);
      expect(calls).toEqual([expected]);
    });

    it("fires all that are due in one wake-up, in the order of their time", async () => {
      after(5_200, "c");
      after(5_000, "a");
      after(5_100, "b");
      after(5_300, "d");
      await vi.advanceTimersByTimeAsync(10_000);
      expect(calls).toEqual(["a at 5250", "b at 5250", "c at 5250", "d at 5550"]);
    });

    it("shares the wake-ups that follow, too", async () => {
      for (const ms of [5_000, 6_000, 7_000]) after(ms, "slow");
      await vi.advanceTimersByTimeAsync(4_000);
      for (const ms of [5_010, 5_500]) wakeUpAt(ms);
      await vi.advanceTimersByTimeAsync(1_500);
      for (const ms of [6_010, 6_500]) wakeUpAt(ms);
      await vi.advanceTimersByTimeAsync(1_000);
      wakeUpAt(7_010);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(calls).toEqual(["slow at 5010", "slow at 6010", "slow at 7010"]);
    });

    it("fires what was due before a shorter timer before it", async () => {
      after(5_000, "slow");
      await vi.advanceTimersByTimeAsync(4_000);
      wakeUpAt(5_100, () => note("short"));
      await vi.advanceTimersByTimeAsync(6_000);
      expect(calls).toEqual(["slow at 5100", "short at 5100"]);
    });

    it("lets what a timer resolves settle before a later deadline, which it may cancel", async () => {
      const deadline = after(5_100, "deadline");
      const work = clock.sleep(5_000).then(() => deadline.cancel());
      await vi.advanceTimersByTimeAsync(10_000);
      await work;
      expect(calls).toEqual([]);
    });

    it("does not fire one that was cancelled before it was due", async () => {
      const cancelled = after(5_000, "cancelled");
      await vi.advanceTimersByTimeAsync(4_000);
      wakeUpAt(4_900, () => cancelled.cancel());
      wakeUpAt(5_100, () => note("short"));
      await vi.advanceTimersByTimeAsync(6_000);
      expect(calls).toEqual(["short at 5100"]);
    });

    it("does not fire one that is cancelled in the wake-up that it shares", async () => {
      clock.after(5_000, () => cancelled.cancel());
      const cancelled = after(5_050, "cancelled");
      await vi.advanceTimersByTimeAsync(4_000);
      wakeUpAt(5_100, () => note("short"));
      await vi.advanceTimersByTimeAsync(6_000);
      expect(calls).toEqual(["short at 5100"]);
    });

    it("fires the others if a callback throws", async () => {
      clock.after(5_000, () => {
        throw new Error("a defect");
      });
      after(5_100, "b");
      await expect(vi.advanceTimersByTimeAsync(10_000)).rejects.toThrow("a defect");
      await vi.advanceTimersByTimeAsync(10_000);
      expect(calls).toEqual(["b at 5250"]);
    });

    it("leaves no timer behind", async () => {
      // More than the test runner may have at the same time.
      const count = 200;
      for (let each = 0; each < count; each++) {
        after(5_000 + each, "fired");
        after(2 ** 32, "cancelled").cancel();
      }
      await vi.advanceTimersByTimeAsync(10_000);
      expect(calls).toHaveLength(count);
      expect(vi.getTimerCount()).toBeLessThan(count);
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

import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "./clock.ts";
import { FakeClock } from "./fake-clock.ts";

describe("FakeClock", () => {
  it("fires timers in the order of their time, then of their making", async () => {
    const clock = new FakeClock();
    const fired: string[] = [];
    clock.after(20, () => fired.push(`c at ${clock.monotonic()}`));
    clock.after(10, () => fired.push(`a at ${clock.monotonic()}`));
    clock.after(10, () => fired.push(`b at ${clock.monotonic()}`));
    await clock.step(20);
    expect(fired).toEqual(["a at 10", "b at 10", "c at 20"]);
  });

  it("fires timers that others made meanwhile, within the same step", async () => {
    const clock = new FakeClock();
    const fired: number[] = [];
    const again = () => {
      fired.push(clock.monotonic());
      clock.after(10, again);
    };
    clock.after(10, again);
    await clock.step(35);
    expect(fired).toEqual([10, 20, 30]);
    expect(clock.monotonic()).toBe(35);
  });

  it("forgets cancelled timers; cancelling twice is nothing", async () => {
    const clock = new FakeClock();
    const timer = clock.after(10, () => expect.fail("cancelled"));
    timer.cancel();
    timer.cancel();
    expect(clock.timers).toBe(0);
    await clock.step(10);
  });

  it("jumps the wall time alone", async () => {
    const clock = new FakeClock(1_000);
    clock.jump(-500);
    await clock.step(10);
    expect([clock.now(), clock.monotonic()]).toEqual([510, 10]);
  });

  it("lets promises settle between timers", async () => {
    const clock = new FakeClock();
    const times: number[] = [];
    const work = (async () => {
      for (let n = 0; n < 3; n++) {
        await clock.sleep(10);
        times.push(clock.monotonic());
      }
    })();
    await clock.step(30);
    await work;
    expect(times).toEqual([10, 20, 30]);
  });
});

describe("sleep", () => {
  it("rejects with the signal's reason, and leaves neither timer nor listener", async () => {
    const clock = new FakeClock();
    const controller = new AbortController();
    const slept = clock.sleep(10, controller.signal);
    const finished = clock.sleep(5, controller.signal);
    await clock.step(5);
    await finished;
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    const reason = new Error("stop");
    controller.abort(reason);
    await expect(slept).rejects.toBe(reason);
    expect(clock.timers).toBe(0);
    await expect(clock.sleep(10, controller.signal)).rejects.toBe(reason);
    expect(clock.timers).toBe(0);
  });
});

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

  it("moves forward", async () => {
    const before = systemClock.monotonic();
    await systemClock.sleep(2);
    expect(systemClock.monotonic()).toBeGreaterThan(before);
    const [earliest, now, latest] = [Date.now(), systemClock.now(), Date.now()];
    expect(now).toBeGreaterThanOrEqual(earliest);
    expect(now).toBeLessThanOrEqual(latest);
  });
});

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
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

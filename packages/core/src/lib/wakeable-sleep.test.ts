import { expect, it } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { WakeableSleep } from "./wakeable-sleep.ts";

const never = new AbortController().signal;

it("sleeps for its time where nothing wakes it", async () => {
  const clock = new FakeClock();
  const slept = new WakeableSleep().wait(clock, 1_000, never);
  await clock.step(1_000);
  expect(await slept).toBe(false);
});

it("is cut short by a wake-up, and leaves no timer", async () => {
  const clock = new FakeClock();
  const sleep = new WakeableSleep();
  const slept = sleep.wait(clock, Number.POSITIVE_INFINITY, never);
  sleep.wake();
  expect(await slept).toBe(true);
  expect(clock.timers).toBe(0);
});

it("keeps a wake-up from before it slept, until it is cleared", async () => {
  const clock = new FakeClock();
  const sleep = new WakeableSleep();
  sleep.wake();
  sleep.wake();
  expect(await sleep.wait(clock, 1_000, never)).toBe(true);
  sleep.clear();
  const slept = sleep.wait(clock, 1_000, never);
  await clock.step(1_000);
  expect(await slept).toBe(false);
});

it("ends with the reason of its signal", async () => {
  const stop = new AbortController();
  const slept = new WakeableSleep().wait(new FakeClock(), 1_000, stop.signal);
  stop.abort(new Error("enough"));
  await expect(slept).rejects.toThrow("enough");
});

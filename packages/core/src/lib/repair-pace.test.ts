import { expect, it } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { RepairPace } from "./repair-pace.ts";

const policy = { baseMs: 500, maxMs: 3_000, jitter: 0 };

it("repairs the first time at once, then ever more slowly up to the longest delay", () => {
  const pace = new RepairPace(new FakeClock(), policy);
  expect(Array.from({ length: 5 }, () => pace.next())).toEqual([0, 1_000, 2_000, 3_000, 3_000]);
});

it("starts again once the other client has left it alone for five minutes", async () => {
  const clock = new FakeClock();
  const pace = new RepairPace(clock, policy);
  for (let repair = 0; repair < 4; repair++) pace.next();
  await clock.step(303_000);
  expect(pace.delayMs).toBe(3_000);
  await clock.step(1);
  expect(pace.next()).toBe(0);
  expect(pace.next()).toBe(1_000);
});

it("reports from the fifth repair on that two clients disagree", () => {
  const pace = new RepairPace(new FakeClock(), policy);
  for (let repair = 0; repair < 4; repair++) pace.next();
  expect(pace.conflicts).toBeUndefined();
  pace.next();
  expect(pace.conflicts).toBe(5);
});

it("counts only what is repaired: looking at the delay changes nothing", () => {
  const pace = new RepairPace(new FakeClock(), policy);
  pace.count();
  expect([pace.delayMs, pace.delayMs]).toEqual([1_000, 1_000]);
});

it("forgets one repair for each quiet time, so that what recurs slowly has no delay at any time", async () => {
  const clock = new FakeClock();
  const pace = new RepairPace(clock, { ...policy, immediate: 3, forgetOneMs: 5_000 });
  expect(Array.from({ length: 5 }, () => pace.next())).toEqual([0, 0, 0, 1_000, 2_000]);
  // Both delays have passed, and three periods without repairs.
  await clock.step(18_000);
  expect(pace.delayMs).toBe(0);
  for (let repair = 0; repair < 20; repair++) {
    expect(pace.next()).toBe(0);
    await clock.step(5_000);
  }
});

it("against a client that undoes each repair at once, the delays grow in spite of what is forgotten", async () => {
  const clock = new FakeClock();
  const pace = new RepairPace(clock, { ...policy, immediate: 3, forgetOneMs: 5_000 });
  const delays: number[] = [];
  for (let repair = 0; repair < 8; repair++) {
    delays.push(pace.next());
    await clock.step(delays.at(-1)! + 10);
  }
  expect(delays.slice(0, 3)).toEqual([0, 0, 0]);
  expect(delays.at(-1)).toBe(3_000);
});

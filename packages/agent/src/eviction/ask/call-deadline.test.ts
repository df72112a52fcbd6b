import { expect, it } from "vitest";
import { CallDeadline } from "./call-deadline.ts";

const CONFIGURED = 5_000;

it("stays the configured one until three deadlines in a row were exceeded", () => {
  const deadline = new CallDeadline();
  for (let at = 0; at < 10; at++) {
    expect(deadline.next(CONFIGURED, at)).toBe(CONFIGURED);
    if (at % 3 === 2) deadline.kept(10);
    else deadline.missed();
  }
});

it("is 1 s after three, the whole one once a minute, and the whole one after an answer in time", () => {
  const deadline = new CallDeadline();
  for (const now of [0, 5_000, 10_000]) {
    expect(deadline.next(CONFIGURED, now)).toBe(CONFIGURED);
    deadline.missed();
  }
  for (const [now, expected] of [
    [15_000, 1_000],
    [69_999, 1_000],
    [70_000, CONFIGURED],
    [75_000, 1_000],
    [130_000, CONFIGURED],
  ] as const) {
    expect(deadline.next(CONFIGURED, now)).toBe(expected);
    deadline.missed();
  }
  deadline.kept(10);
  expect(deadline.next(CONFIGURED, 131_000)).toBe(CONFIGURED);
});

it("is never longer than the configured one", () => {
  const deadline = new CallDeadline();
  for (let at = 0; at < 5; at++) {
    expect(deadline.next(300, at)).toBe(300);
    deadline.missed();
  }
});

it("is twice the longest of the last eight answers in time, so that a plugin that is usually that slow is not cut off", () => {
  const deadline = new CallDeadline();
  for (const ms of [4_000, ...Array(7).fill(10), 2_000]) deadline.kept(ms);
  for (let at = 0; at < 3; at++) {
    expect(deadline.next(10_000, at)).toBe(10_000);
    deadline.missed();
  }
  expect(deadline.next(10_000, 3)).toBe(4_000);
  expect(deadline.next(3_000, 4)).toBe(3_000);
});

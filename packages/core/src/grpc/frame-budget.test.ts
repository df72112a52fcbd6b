import { expect, it } from "vitest";
import { FakeClock } from "../lib/index.ts";
import { FRAMES_AT_ONCE, FRAMES_PER_SECOND, FrameBudget, PAYLOAD_OF_A_FRAME } from "./frame-budget.ts";
import { frame } from "./testing/frames.ts";

const TOO_MANY = /too many small HTTP\/2 frames/;

function data(payload: number, count = 1): Buffer {
  return Buffer.concat(Array<Buffer>(count).fill(frame(0, 0, 1, Buffer.alloc(payload))));
}

function readAll(budget: FrameBudget, bytes: Buffer): number {
  return budget.read(bytes, 0, Number.POSITIVE_INFINITY).frames;
}

it.each([0, 1, 31])(
  "frames of %i bytes: as many at once as the budget has, and not twice as many more",
  (payload) => {
    const budget = new FrameBudget(new FakeClock());
    expect(readAll(budget, data(payload, FRAMES_AT_ONCE))).toBe(FRAMES_AT_ONCE);
    const more = Math.ceil(FRAMES_AT_ONCE / (1 - payload / PAYLOAD_OF_A_FRAME)) - FRAMES_AT_ONCE + 1;
    expect(() => readAll(budget, data(payload, more))).toThrow(TOO_MANY);
  },
);

it("a used up budget comes back over time", async () => {
  const clock = new FakeClock();
  const budget = new FrameBudget(clock);
  readAll(budget, data(0, FRAMES_AT_ONCE));
  await clock.step(1_000);
  expect(readAll(budget, data(0, FRAMES_PER_SECOND))).toBe(FRAMES_PER_SECOND);
  expect(() => readAll(budget, data(0))).toThrow(TOO_MANY);
});

it("frames that are counted every two seconds may have come together at any time in between", async () => {
  const clock = new FakeClock();
  const budget = new FrameBudget(clock);
  const steady = 2 * 4_000;
  for (let sample = 0; sample < 5; sample++) {
    await clock.step(2_000);
    budget.take(steady, 0);
  }
  await clock.step(2_000);
  budget.take(steady + 13_000, 0);
  await clock.step(2_000);
  expect(() => budget.take(2 * FRAMES_PER_SECOND + FRAMES_AT_ONCE, 0)).toThrow(TOO_MANY);
});

const honest = [
  { name: "25 messages a second of 20 bytes", perSecond: 25, payload: 20, seconds: 600 },
  { name: "10,000 messages a second of 100 bytes", perSecond: 10_000, payload: 100, seconds: 20 },
  { name: "1,000 unary calls a second without content", perSecond: 5_000, payload: 5, seconds: 60 },
  { name: "messages in frames of 16 KiB", perSecond: 500, payload: 16_384, seconds: 5 },
];

it.each(honest)("an honest peer meets no limit: $name", async ({ perSecond, payload, seconds }) => {
  const clock = new FakeClock();
  const budget = new FrameBudget(clock);
  const bytes = data(payload, perSecond);
  for (let second = 0; second < seconds; second++) {
    readAll(budget, bytes);
    await clock.step(1_000);
  }
});

it("large frames save up no more than the budget", () => {
  const budget = new FrameBudget(new FakeClock());
  readAll(budget, data(16_384, 200));
  expect(() => readAll(budget, data(1, 2 * FRAMES_AT_ONCE))).toThrow(TOO_MANY);
});

it("counts the same frames wherever the bytes are cut", () => {
  const bytes = Buffer.concat([Buffer.alloc(24, 0xff), data(0), data(1), data(300), data(70_000), data(2)]);
  for (const size of [1, 2, 8, 9, 10, 333, bytes.length]) {
    const budget = new FrameBudget(new FakeClock(), 24);
    let frames = 0;
    for (let at = 0; at < bytes.length; at += size) frames += readAll(budget, bytes.subarray(at, at + size));
    expect({ size, frames }).toEqual({ size, frames: 5 });
  }
});

it("stops before the frame that would be one too many for the turn", () => {
  const budget = new FrameBudget(new FakeClock());
  const bytes = data(1, 5);
  const first = budget.read(bytes, 0, 2);
  expect(first).toEqual({ end: 20, frames: 2 });
  expect(budget.read(bytes, first.end, 2)).toEqual({ end: 40, frames: 2 });
  expect(budget.read(bytes, 40, 2)).toEqual({ end: 50, frames: 1 });
});

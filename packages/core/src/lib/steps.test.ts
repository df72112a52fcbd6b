import { describe, expect, it } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { LoopTurns } from "./loop-turns.ts";
import { completed, inTurns, StepMeter, type Steps } from "./steps.ts";

function* counting(to: number, meter: StepMeter): Steps<number> {
  let sum = 0;
  for (let unit = 1; unit <= to; unit++) {
    if (meter.spend()) yield;
    sum += unit;
  }
  return sum;
}

describe("work in steps", () => {
  it("can be done at once", () => {
    expect(completed(counting(1_000, new StepMeter(10)))).toBe(500_500);
  });

  it("can be done over turns of the event loop, with other work in between", async () => {
    let others = 0;
    const other = () => {
      others++;
      next = setImmediate(other);
    };
    let next = setImmediate(other);
    const sum = await inTurns(counting(100_000, new StepMeter(10)), new LoopTurns(new FakeClock()));
    clearImmediate(next);
    expect(sum).toBe(5_000_050_000);
    // 32 steps of 10 units per turn.
    expect(others).toBeGreaterThanOrEqual(300);
  });

  it("throws what a step throws", async () => {
    function* failing(): Steps<never> {
      yield;
      throw new RangeError("too long");
    }
    expect(() => completed(failing())).toThrow("too long");
    await expect(inTurns(failing(), new LoopTurns(new FakeClock()))).rejects.toThrow("too long");
  });
});

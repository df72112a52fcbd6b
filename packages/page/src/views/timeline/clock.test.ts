import { describe, expect, it } from "vitest";
import { NodeClock } from "./clock.ts";

describe("the node's clock", () => {
  it("is the browser's where they are about the same", () => {
    const clock = new NodeClock(() => 100_000);
    clock.take(99_000);
    expect(clock.now()).toBe(100_000);
  });

  it("is that of the messages where it is another", () => {
    let now = 100_000;
    const clock = new NodeClock(() => now);
    clock.take(400_000);
    expect(clock.now()).toBe(400_000);
    // A message that was on its way for long shows less.
    now = 120_000;
    clock.take(405_000);
    expect(clock.now()).toBe(420_000);
  });

  it("follows a clock that was set", () => {
    let now = 0;
    const clock = new NodeClock(() => now);
    for (let round = 0; round < 10; round++) {
      now += 5_000;
      clock.take(now - 3_600_000);
    }
    expect(clock.skewMs).toBe(-3_600_000);
  });
});

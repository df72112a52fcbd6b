import { describe, expect, it } from "vitest";
import { NodeClock } from "./node-clock.ts";

const setUp = (wall = 1_000_000) => {
  const browser = {
    time: { wall, monotonic: 5_000 },
    wall: () => browser.time.wall,
    monotonic: () => browser.time.monotonic,
  };
  const pass = (ms: number) => {
    browser.time.wall += ms;
    browser.time.monotonic += ms;
  };
  return { browser, pass, clock: new NodeClock(browser) };
};

describe("the node's clock", () => {
  it("is the browser's where they are about the same", () => {
    const { clock } = setUp();
    expect(clock.now()).toBe(1_000_000);
    clock.take(999_000);
    expect(clock.now()).toBe(1_000_000);
  });

  it("is that of the messages where it is another", () => {
    const { clock, pass } = setUp();
    clock.take(4_000_000);
    expect(clock.now()).toBe(4_000_000);
    // A message that was on its way for long shows less.
    pass(20_000);
    clock.take(4_005_000);
    expect(clock.now()).toBe(4_020_000);
  });

  it("continues where the browser's clock is set while the page is open", () => {
    const { clock, pass, browser } = setUp();
    clock.take(1_000_000);
    browser.time.wall += 30 * 3_600_000;
    pass(2_000);
    expect(clock.now()).toBe(1_002_000);
  });

  it("follows the node's clock where that is set", () => {
    const { clock, pass } = setUp(100_000_000);
    clock.take(100_000_000);
    for (let round = 1; round <= 4; round++) {
      pass(5_000);
      clock.take(100_000_000 - 3_600_000 + round * 5_000);
    }
    expect(clock.now()).toBe(100_020_000 - 3_600_000);
  });

  it("is that of an answer's date, and ignores what is none", () => {
    const { clock, browser } = setUp();
    for (const date of [null, "", "yesterday"]) clock.takeDate(date);
    expect(clock.now()).toBe(1_000_000);
    browser.time.monotonic += 0.3;
    clock.takeDate("Thu, 01 Jan 1970 01:00:00 GMT");
    browser.time.monotonic += 0.4;
    expect(clock.now()).toBe(3_600_500);
  });
});

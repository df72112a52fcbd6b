import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { moveEveryMs, NARROWEST_MS, rangeBetween, ticksOf, timeAt, WIDEST_MS, xOf, zoomed } from "./scale.ts";

const start = Date.UTC(2026, 10, 22, 3, 0);
const tenMinutes = { from: start, to: start + 600_000 };

describe("the time axis", () => {
  it("has a pixel for each time, and a time for each pixel", () => {
    expect(xOf(start + 300_000, tenMinutes, 1_000)).toBe(500);
    expect(timeAt(500, tenMinutes, 1_000)).toBe(start + 300_000);
  });

  it("zooms around a time that stays where it is, within its bounds", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: NARROWEST_MS, max: WIDEST_MS }),
        fc.double({ min: 0.001, max: 1_000, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (width, factor, share) => {
          const range = { from: start, to: start + width };
          const around = start + share * width;
          const next = zoomed(range, factor, around);
          const nextWidth = next.to - next.from;
          expect(nextWidth).toBeGreaterThanOrEqual(NARROWEST_MS);
          expect(nextWidth).toBeLessThanOrEqual(WIDEST_MS);
          expect(Math.abs(xOf(around, next, 1) - share)).toBeLessThan(2 / nextWidth);
        },
      ),
    );
  });

  it("takes two times in either order", () => {
    expect(rangeBetween(start + 5_000, start)).toEqual({ from: start, to: start + 5_000 });
    expect(rangeBetween(start, start)).toEqual({ from: start, to: start + NARROWEST_MS });
  });

  it("moves by the second at ten minutes, and seldom at a day", () => {
    expect(moveEveryMs(600_000)).toBe(1_000);
    expect(moveEveryMs(10_000)).toBe(250);
    expect(moveEveryMs(86_400_000)).toBe(60_000);
  });

  it("has ticks at round times, not closer than their labels need, and the date at the first", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: NARROWEST_MS, max: WIDEST_MS }),
        fc.integer({ min: 250, max: 4_000 }),
        fc.integer({ min: 0, max: 86_400_000 }),
        (width, px, later) => {
          const range = { from: start + later, to: start + later + width };
          const ticks = ticksOf(range, px);
          expect(ticks.length).toBeLessThanOrEqual(px / 90 + 1.5);
          for (const { at } of ticks) {
            expect(at).toBeGreaterThanOrEqual(range.from);
            expect(at).toBeLessThanOrEqual(range.to);
            expect(at % 1_000).toBe(0);
          }
          expect(ticks.every(({ isDate }, index) => index > 0 || isDate)).toBe(true);
        },
      ),
    );
    const labels = ticksOf(tenMinutes, 500).map(({ at }) => at - start);
    expect(labels).toEqual([0, 120_000, 240_000, 360_000, 480_000, 600_000]);
  });
});

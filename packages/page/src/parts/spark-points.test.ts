import { describe, expect, it } from "vitest";
import { sparkPoints } from "./spark-points.ts";

describe("sparkPoints", () => {
  it("spreads values from edge to edge, the largest at the top, zero at the bottom", () => {
    expect(sparkPoints([0, 5, 10], 100, 20)).toEqual([
      { x: 0, y: 20 },
      { x: 50, y: 10 },
      { x: 100, y: 0 },
    ]);
  });

  it("keeps one value, and values that are all zero, at an edge", () => {
    expect(sparkPoints([3], 100, 20)).toEqual([{ x: 0, y: 0 }]);
    expect(sparkPoints([0, 0], 100, 20)).toEqual([
      { x: 0, y: 20 },
      { x: 100, y: 20 },
    ]);
  });

  it("leaves out what is not a duration", () => {
    expect(sparkPoints([Number.NaN, -1, 4], 10, 10)).toEqual([{ x: 10, y: 0 }]);
    expect(sparkPoints([], 10, 10)).toEqual([]);
  });
});

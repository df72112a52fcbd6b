import { describe, expect, it } from "vitest";
import { keepOrder } from "./use-held-order.ts";

describe("keepOrder", () => {
  it("sorts while no reader holds the order", () => {
    expect(keepOrder(["b", "a"], ["a", "b", "c"], false)).toEqual(["a", "b", "c"]);
  });

  it("moves no row that is being read; new ones come last, removed ones leave", () => {
    expect(keepOrder(["b", "a", "d"], ["a", "b", "c"], true)).toEqual(["b", "a", "c"]);
  });
});

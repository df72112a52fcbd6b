import { expect, it } from "vitest";
import { moveTo } from "./move.ts";

it("keys move through a grid of 7 cells in 3 columns and stay inside", () => {
  const move = (key: string, from: number) => moveTo(key, from, 7, 3);
  expect([move("ArrowRight", 0), move("ArrowRight", 6), move("ArrowLeft", 0)]).toEqual([1, 6, 0]);
  expect([move("ArrowDown", 1), move("ArrowDown", 5), move("ArrowUp", 5), move("ArrowUp", 2)]).toEqual([
    4, 5, 2, 2,
  ]);
  expect([move("Home", 4), move("End", 4), move("Enter", 4)]).toEqual([0, 6, undefined]);
});

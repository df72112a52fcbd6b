import { expect, it } from "vitest";
import { type EvictionState, emptyEvictionState, stateAt } from "./state.ts";

const since = 1_000_000;
const before: EvictionState = { ...emptyEvictionState(), at: since, unserved: [{ plugin: "p", since }] };

it("times do not change because the wall clock has whole milliseconds and elapsed time has fractions", () => {
  let state = before;
  for (let round = 1; round <= 1_000; round++) {
    const now = since + Math.floor(round * 5_000.37);
    state = stateAt(state, now, 5_000.37);
    expect(state.unserved).toEqual([{ plugin: "p", since }]);
    expect(state.at).toBe(now);
  }
});

it.each([
  ["forward", 60_000],
  ["back", -60_000],
  ["by little", 10],
])("times move with a step of the wall clock %s", (_name, step) => {
  const state = stateAt(before, since + 5_000 + step, 5_000);
  expect(state.unserved).toEqual([{ plugin: "p", since: since + step }]);
});

import { expect, it } from "vitest";
import { matches, mismatchOf } from "./mismatch.ts";
import * as s from "./schema.ts";

it.each([
  [s.constant(true), true, false],
  [s.constant("pod"), "pod", "node"],
  [s.oneOf(["set", "cleared"]), "set", "gone"],
  [s.nullable(s.text()), null, 1],
  [s.list(s.constant(true)), [true, true], [true, false]],
  [s.either(s.text(), s.constant(true)), true, false],
  [s.time(), 1_767_600_000_000, 9e15],
  [s.nullable(s.time()), 0, -9e15],
  [s.integer(), 3, 1e300],
  // Plugins report any number.
  [s.number(), -1e308, "1"],
])("checks %j", ({ json }, good, bad) => {
  expect([matches(json, good), matches(json, bad)]).toEqual([true, false]);
});

it("accepts any value of a schema without keywords", () => {
  expect(matches(s.anything().json, { a: 1 })).toBe(true);
});

it("names the member that is wrong, and ignores those that it does not know", () => {
  const { json } = s.object({ uid: s.text(), late: s.optional(s.constant(true)) });
  expect(mismatchOf(json, { uid: "1", late: true, more: 1 })).toBeUndefined();
  expect(mismatchOf(json, { uid: "1", late: "yes" })).toBe("late is missing or wrong");
  expect(mismatchOf(json, { late: true })).toBe("uid is missing or wrong");
});

import { expect, it } from "vitest";
import { itemsOf, toggled } from "./choices.ts";

it("an item is added to a list as it is typed, and removed, also where it was typed twice", () => {
  expect(itemsOf(" a, b,,c ")).toEqual(["a", "b", "c"]);
  expect(itemsOf("")).toEqual([]);
  expect(toggled("", "*")).toBe("*");
  expect(toggled("a, b", "c")).toBe("a,b,c");
  expect(toggled("a, b ,a", "a")).toBe("b");
  expect(toggled("*", "*")).toBe("");
});

import { expect, it } from "vitest";
import { RecentMap } from "./recent-map.ts";

it("removes the least recently set entry above its limit", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
});

it("counts deleted entries no more", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1).set("b", 2);
  map.delete("a");
  map.set("c", 3);
  expect([...map.keys()]).toEqual(["b", "c"]);
});

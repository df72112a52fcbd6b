import { expect, it } from "vitest";
import { readAddress } from "../../address.ts";
import { readQuery, whatIfAddress } from "./query.ts";

it("an address has what was typed, also where it is not valid, and since when", () => {
  const whatIf = {
    typed: new Map([
      ["burst", "1"],
      ["skip.labels", "example.com/keep, a&b=c"],
      ["cooldown", "5 minutes \u202e"],
    ]),
    since: 1_700_000_000_000,
  };
  const { view, query } = readAddress(whatIfAddress(whatIf));
  expect(view).toBe("what-if");
  expect(readQuery(query)).toEqual({
    ...whatIf,
    typed: new Map([...whatIf.typed].sort(([a], [b]) => (a === "burst" ? -1 : b === "burst" ? 1 : 0))),
  });
});

it("an address of another has unknown members and wrong times left out", () => {
  const query = new URLSearchParams({
    burst: "2",
    nonsense: "x",
    since: "yesterday",
    taintPrefix: "x".repeat(5_000),
  });
  expect(readQuery(query)).toEqual({ typed: new Map([["burst", "2"]]), since: undefined });
});

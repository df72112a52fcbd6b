import { expect, it } from "vitest";
import { timesIn } from "./times-in.ts";

const START = Date.parse("2026-03-01T12:00:00.000Z");

it.each<[string, (string | number)[]]>([
  ["", []],
  ["no time", ["no time"]],
  ["Evicted at 2026-03-01T12:00:00.000Z (round 1)", ["Evicted at ", START, " (round 1)"]],
  ["2026-03-01T12:00:00Z2026-03-01T12:00:01Z", [START, START + 1_000]],
  ["at 2026-99-01T12:00:00Z", ["at 2026-99-01T12:00:00Z"]],
])("finds the times in %j", (sentence, pieces) => {
  expect(timesIn(sentence)).toEqual(pieces);
});

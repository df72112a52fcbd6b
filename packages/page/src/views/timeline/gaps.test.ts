import { expect, it } from "vitest";
import { gapsOf, gapText } from "./gaps.ts";
import type { Mark } from "./marks.ts";

const START = Date.UTC(2026, 10, 22, 3);
const MINUTE = 60_000;
const mark = (kind: Mark["kind"], minute: number, since?: number): Mark => ({
  id: minute,
  at: START + minute * MINUTE,
  kind,
  title: "",
  ...(since === undefined ? {} : { unobservedSince: START + since * MINUTE }),
});
const range = (from: number, to: number) => ({ from: START + from * MINUTE, to: START + to * MINUTE });
const marks = [
  mark("agentStarted", 0),
  mark("pluginLost", 5),
  mark("agentStartedAfterKill", 20, 10),
  mark("roundsPaused", 90, 30),
  mark("agentStarted", 100, 95),
];

it("are where the agent did not run, or ran no rounds", () => {
  const kinds = gapsOf(marks, range(-10, 200)).map(({ kind, from, to }) => [
    kind,
    (from - START) / MINUTE,
    (to - START) / MINUTE,
  ]);
  expect(kinds).toEqual([
    ["killed", 10, 20],
    ["paused", 30, 90],
    ["stopped", 95, 100],
  ]);
});

it("are those that reach into what is shown, also where they begin before and end after it", () => {
  expect(gapsOf(marks, range(40, 50)).map(({ kind }) => kind)).toEqual(["paused"]);
  expect(gapsOf(marks, range(21, 29))).toEqual([]);
});

it("are described by what is known: after a kill, the last sign of life", () => {
  const [killed, paused, stopped] = gapsOf(marks, range(0, 200)).map(gapText);
  expect(killed).toMatch(
    /^Agent down for 10 min, last sign of life .*, started again .*: nothing was observed$/,
  );
  expect(paused).toMatch(/^No rounds for 60 min, .* to .*: no threshold was checked$/);
  expect(stopped).toMatch(/^Agent down for 5 min, [^l].* to .*: nothing was observed$/);
});

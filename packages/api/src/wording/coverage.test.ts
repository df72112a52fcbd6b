import { expect, it } from "vitest";
import { coverageLines, missingLines } from "./coverage.ts";

const at = (second: number) => Date.parse(`2026-03-01T12:00:${second.toString().padStart(2, "0")}Z`);
const time = (second: number) => new Date(at(second)).toISOString();
const gap = { from: at(20), to: at(30), why: "the disk was full" };
const missing = `Records are missing between ${time(20)} and ${time(30)}: the disk was full.`;

it.each([
  ["nothing before they begin", { oldest: at(10), requests: at(10), gaps: [] }, at(10), []],
  ["what was before", { oldest: at(10), gaps: [] }, at(9), [`No records before ${time(10)} are kept.`]],
  [
    "rounds without effect",
    { oldest: at(10), requests: at(15), gaps: [] },
    at(12),
    [`No records before ${time(15)} are kept.`],
  ],
  ["a gap", { oldest: at(10), gaps: [gap] }, at(25), [missing]],
  ["no gap that was earlier", { oldest: at(10), gaps: [gap] }, at(31), []],
] as const)("of the records of a time is missing: %s", (_what, coverage, from, lines) => {
  expect(missingLines({ ...coverage, gaps: [...coverage.gaps] }, from)).toEqual(lines);
});

it("how far records go back names what was trimmed earlier, and gaps", () => {
  expect(coverageLines({ oldest: at(10), requests: at(15), gaps: [gap] }, null)).toEqual([
    `Records go back to ${time(10)}; of requests that had no effect to ${time(15)}.`,
    missing,
  ]);
  const none = { oldest: null, gaps: [] };
  expect(coverageLines(none, at(5))).toEqual([`Records go back to ${time(5)}.`]);
  expect(coverageLines(none, null)).toEqual([]);
});

import { describe, expect, it } from "vitest";
import { growthOf, type Sample, tableOf } from "./samples.ts";

/** One sample each second; `change` gives what differs from a quiet agent. */
function samplesOf(seconds: number, change: (at: number) => Partial<Sample> = () => ({})): Sample[] {
  return Array.from({ length: seconds }, (_, at) => ({
    at,
    pid: 1,
    rssMb: 90,
    descriptors: 50,
    loopDelayMs: 2,
    livezMs: 3,
    ...change(at),
  }));
}

describe("growth", () => {
  it.each([
    ["a quiet agent", samplesOf(600)],
    [
      "bursts that are given back",
      samplesOf(600, (at) => (at % 60 === 0 ? { rssMb: 180, descriptors: 90 } : {})),
    ],
    [
      "a first minute that takes what it needs",
      samplesOf(600, (at) => (at < 55 ? { rssMb: 40, descriptors: 10 } : {})),
    ],
    [
      "lives that are too short to be judged",
      samplesOf(600, (at) => ({ pid: Math.floor(at / 100), rssMb: 90 + at / 4 })),
    ],
    ["no samples", []],
  ])("is not found in %s", (_, samples) => {
    expect(growthOf(samples)).toEqual([]);
  });

  it.each([
    [
      "memory between bursts",
      samplesOf(600, (at) => ({ rssMb: 90 + at / 10 })),
      /^rssMb of process 1 grew from 96 to/,
    ],
    [
      "descriptors",
      samplesOf(600, (at) => ({ descriptors: 50 + Math.floor(at / 10) })),
      /^descriptors .* grew from 56 to/,
    ],
    ["a burst beyond every bound", samplesOf(5, (at) => ({ rssMb: 120 * at })), /^RSS reached 480 MB$/],
    [
      "more descriptors than ever needed",
      samplesOf(5, () => ({ descriptors: 301 })),
      /^301 descriptors were open$/,
    ],
  ])("is found: %s", (_, samples, expected) => {
    expect(growthOf(samples)).toEqual([expect.stringMatching(expected)]);
  });
});

it("the table has a line for each minute, with the lives of the agent in it", () => {
  const samples = samplesOf(90, (at) => ({
    pid: at < 30 ? 1 : 2,
    loopDelayMs: at === 40 ? 70 : 2,
    livezMs: undefined,
  }));
  expect(tableOf(samples).split("\n").slice(2)).toEqual([
    "| 0 | 2 | 90.0 / 90.0 / 90.0 | 50 / 50 / 50 | 2.0 / 2.0 / 70.0 | - |",
    "| 1 | 1 | 90.0 / 90.0 / 90.0 | 50 / 50 / 50 | 2.0 / 2.0 / 2.0 | - |",
  ]);
});

import { describe, expect, it } from "vitest";
import type { RoundReadings } from "../../live.ts";
import { bySeverity, mergeRounds, metPeriods, readingAt, signalsOf, wholeSince } from "./signals.ts";

type Reading = RoundReadings["readings"][number];

const round = (at: number, ...readings: Partial<Reading>[]): RoundReadings => ({
  at,
  readings: readings.map((reading) => ({
    ...{
      plugin: "p",
      scope: "memory",
      operator: "greaterThan" as const,
      observed: 50,
      threshold: 90,
      met: "none" as const,
    },
    ...reading,
  })),
});
const range = { from: 0, to: 100_000 };

describe("signals", () => {
  it("have the values of each plugin and scope, and a hole where rounds are missing", () => {
    const rounds = [5_000, 10_000, 15_000, 60_000].map((at) =>
      round(at, { observed: at / 1_000 }, { scope: "disk" }),
    );
    const [memory, disk] = signalsOf(rounds);
    expect(memory?.observed).toEqual([5, 10, 15, null, 60]);
    expect(memory?.at).toEqual([5_000, 10_000, 15_000, 15_001, 60_000]);
    expect(disk).toMatchObject({ scope: "disk", plugin: "p" });
  });

  it("are left out where no value was reported", () => {
    expect(signalsOf([round(5_000, { observed: null })])).toEqual([]);
  });

  it("are met from the first round that reports it to the first that does not, soft and hard apart", () => {
    const met = ["none", "soft", "soft", "hard", "none", "hard"] as const;
    const [signal] = signalsOf(met.map((each, index) => round(index * 5_000, { met: each })));
    expect(metPeriods(signal!)).toEqual([
      { from: 5_000, to: 15_000, met: "soft" },
      { from: 15_000, to: 20_000, met: "hard" },
      { from: 25_000, to: 25_000, met: "hard" },
    ]);
  });

  it("have a reading at a time: the last before it, unless that is long ago", () => {
    const [signal] = signalsOf([round(5_000, {}), round(10_000, {})]);
    expect(readingAt(signal!, 9_999, 60_000)).toBe(0);
    expect(readingAt(signal!, 12_000, 60_000)).toBe(1);
    expect(readingAt(signal!, 80_000, 60_000)).toBeUndefined();
    expect(readingAt(signal!, 4_000, 60_000)).toBeUndefined();
  });

  it("come in the order of need: met, then near the threshold", () => {
    const signals = signalsOf([
      round(
        5_000,
        { scope: "far", observed: 5 },
        { scope: "near", observed: 89 },
        { scope: "met", observed: 91, met: "hard" },
      ),
      round(10_000, { scope: "below", operator: "lessThan", observed: 100, threshold: 90 }),
    ]);
    expect(bySeverity(signals, range).map(({ scope }) => scope)).toEqual(["met", "near", "below", "far"]);
  });

  it("are read where the stream has a hole", () => {
    const rounds = [5_000, 10_000, 15_000, 90_000, 95_000, 100_000].map((at) => round(at, {}));
    expect(wholeSince(rounds)).toBe(90_000);
    expect(wholeSince(rounds.slice(3))).toBe(90_000);
    expect(wholeSince([])).toBeUndefined();
  });

  it("are made of rounds of history and stream, each once", () => {
    const rounds = mergeRounds([round(5_000), round(10_000)], [round(10_000), round(15_000)]);
    expect(rounds.map(({ at }) => at)).toEqual([5_000, 10_000, 15_000]);
  });
});

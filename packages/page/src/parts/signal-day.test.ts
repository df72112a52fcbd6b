import { describe, expect, it } from "vitest";
import {
  bySeverity,
  dayOf,
  dayText,
  readingText,
  type Signal,
  type SignalHistory,
  stepsOf,
  valueRange,
} from "./signal-day.ts";

const MIN = 60_000;
const minutes = (...starts: number[]): SignalHistory["minutes"] =>
  starts.map((start) => ({ from: start * MIN, to: start * MIN + 55_000 }));
const signal = (observed: (number | null)[], met: Signal["met"] = observed.map(() => "none")): Signal => ({
  ...{ plugin: "p", scope: "memory", operator: "greaterThan", observed, met },
  threshold: met.map((each) => (each === null ? null : 0.8)),
});
const day = (starts: number[], one: Signal, from: number, to: number) =>
  dayOf({ minutes: minutes(...starts) }, one, { from: from * MIN, to: to * MIN });
const spans = (items: readonly { from: number; to: number }[]) =>
  items.map(({ from, to }) => [from / MIN, to / MIN].map((each) => Math.round(each * 100) / 100));

describe("a signal over a day", () => {
  it("has readings that adjoin while rounds run, and gaps of which there is no record", () => {
    const { readings, gaps } = day([0, 1, 2, 10, 11], signal([1, 2, 3, 4, 5]), 0, 12);
    expect(spans(readings)).toEqual([
      [0, 1],
      [1, 2],
      [2, 2.92],
      [10, 11],
      [11, 12],
    ]);
    expect(spans(gaps)).toEqual([[2.92, 10]]);
    expect(gaps[0]!.why).toBe("notRecorded");
  });

  it("is not recorded before the first and after the last reading, and not reported in between", () => {
    const one = signal([1, null, null, 2], ["none", null, null, "soft"]);
    const { readings, gaps } = day([5, 6, 7, 8], one, 0, 20);
    expect(spans(readings)).toEqual([
      [5, 6],
      [8, 8.92],
    ]);
    expect(gaps.map(({ why }) => why)).toEqual(["notRecorded", "notReported", "notRecorded"]);
    expect(spans(gaps)).toEqual([
      [0, 5],
      [6, 8],
      [8.92, 20],
    ]);
  });

  it("has nothing of what is outside of the range, and takes a clock that was set back", () => {
    expect(spans(day([0, 1, 5], signal([1, 2, 3]), 3, 6).readings)).toEqual([[5, 6]]);
    expect(spans(day([10, 3, 4], signal([1, 2, 3]), 0, 12).readings)).toEqual([
      [10, 10.92],
      [3, 4],
      [4, 4.92],
    ]);
    expect(day([], signal([]), 0, 2)).toEqual({
      readings: [],
      gaps: [{ from: 0, to: 2 * MIN, why: "notRecorded" }],
    });
  });

  it("is said in words", () => {
    const one = signal([0.5, 0.9, null, 0.4], ["none", "hard", null, "none"]);
    const known = day([0, 1, 2, 3], one, 0, 4);
    expect(dayText(known, one)).toBe(
      "last 0.4, from 0.4 to 0.9; threshold 0.8 met in 1 of 3 minutes; not reported for 60 s",
    );
    expect(dayText(day([0], signal([0.5]), 0, 60), one)).toMatch(
      /threshold 0.8 not met; not recorded for 59 min/,
    );
    expect(dayText({ readings: [], gaps: [] }, one)).toBe("no value is recorded");
    const varying = { ...signal([1, 1, 1, 1]), threshold: [2, 3, 4, 5] };
    expect(dayText(day([0, 1, 2, 3], varying, 0, 4), varying)).toBe(
      "last 1, from 1 to 1; threshold varies, not met",
    );
    const text = (time: number) => readingText(known, one, time * MIN).replace(/^[\d./]* ?[\d:]+: /, "");
    expect([0.5, 1.5, 2.5, 9].map(text)).toEqual([
      "0.5, threshold 0.8",
      "0.9, threshold 0.8, met (hard)",
      "not reported",
      "not recorded",
    ]);
  });

  it("is drawn from 0 with its thresholds", () => {
    expect(valueRange(day([0], signal([0.5]), 0, 1).readings).low).toBe(0);
    expect(valueRange(day([0], signal([-2]), 0, 1).readings)).toMatchObject({ low: -2 });
    expect(valueRange([])).toEqual({ low: 0, high: 1 });
  });

  it("is drawn in steps, and nothing across a gap or a missing value", () => {
    const step = (from: number, to: number, y: number | null) => ({ from, to, y });
    expect(stepsOf([step(0, 2, 5), step(2, 4, 7), step(9, 11, 7)])).toBe("M0 5H2V7H4M9 7H11");
    expect(stepsOf([step(0, 2, 5), step(2, 4, null), step(4, 6, 1)])).toBe("M0 5H2M4 1H6");
    expect(stepsOf([step(3, 3, 5)])).toBe("M3 5H4");
  });

  it("comes first if it met its threshold longest", () => {
    const item = (plugin: string, ...met: Signal["met"]) => {
      const one = {
        ...signal(
          met.map(() => 1),
          met,
        ),
        plugin,
      };
      return {
        signal: one,
        day: day(
          met.map((_, at) => at),
          one,
          0,
          met.length,
        ),
      };
    };
    const items = [
      item("b", "none", "none"),
      item("a", "none", "none"),
      item("c", "soft", "hard"),
      item("d", "hard", "none"),
    ];
    expect(bySeverity(items).map(({ signal }) => signal.plugin)).toEqual(["c", "d", "a", "b"]);
  });
});

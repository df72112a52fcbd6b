import { describe, expect, it } from "vitest";
import { gravest, groupMarks, lookOf, type Mark, mergeMarks, neighbourOf } from "./marks.ts";

const mark = (id: number, at: number, kind: Mark["kind"] = "evictionEnded"): Mark => ({
  id,
  at,
  kind,
  title: `${id}`,
});
const range = { from: 0, to: 100_000 };

describe("marks", () => {
  it("are one where they would cover each other", () => {
    const marks = [mark(1, 1_000), mark(2, 2_000), mark(3, 50_000), mark(4, 200_000)];
    const groups = groupMarks(marks, range, 1_000, 15);
    expect(groups.map(({ x, marks }) => [x, marks.map(({ id }) => id)])).toEqual([
      [10, [1, 2]],
      [500, [3]],
    ]);
    expect(groupMarks(marks, { from: 0, to: 10_000 }, 1_000, 15)).toHaveLength(2);
  });

  it("are drawn as the gravest of them", () => {
    const [first, ...rest] = [
      mark(1, 1),
      mark(2, 2, "taintAdded"),
      mark(3, 3, "evictionSelected"),
      mark(4, 4),
    ];
    expect(gravest([first!, ...rest]).id).toBe(3);
  });

  it("of a kind that is not known yet are events", () => {
    expect(lookOf("somethingNew")).toMatchObject({ word: "Event" });
    expect(lookOf("constructor")).toMatchObject({ word: "Event" });
  });

  it("are found in both directions", () => {
    const marks = [mark(1, 1_000), mark(2, 2_000), mark(3, 3_000)];
    expect(neighbourOf(marks, 2_000, 1)?.id).toBe(3);
    expect(neighbourOf(marks, 2_000, -1)?.id).toBe(1);
    expect(neighbourOf(marks, 3_000, 1)).toBeUndefined();
  });

  it("count once when history and stream have them both", () => {
    const merged = mergeMarks([mark(1, 1_000), mark(3, 3_000)], [mark(3, 3_000), mark(2, 2_000)]);
    expect(merged.map(({ id }) => id)).toEqual([1, 2, 3]);
  });
});

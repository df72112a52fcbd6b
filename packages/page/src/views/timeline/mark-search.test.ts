import { describe, expect, it } from "vitest";
import { findMark } from "./mark-search.ts";
import type { Mark } from "./marks.ts";
import type { ReadPage } from "./paged-history.ts";

const now = 1_795_000_000_000;
const hour = 3_600_000;
const marks = [30, 20, 19, 1].map(
  (hoursAgo, id): Mark => ({ id, at: now - hoursAgo * hour, kind: "taintAdded", title: "" }),
);

const setUp = () => {
  let asked = 0;
  // Two on a page.
  const read: ReadPage<Mark> = async ({ since, until, after = -1 }) => {
    asked++;
    const found = marks.filter(({ at, id }) => at >= since && at <= until && id > after);
    return { items: found.slice(0, 2), next: found.length > 2 ? found[1]!.id : undefined };
  };
  const { signal } = new AbortController();
  const find = (from: number, direction: 1 | -1) =>
    findMark(read, from, direction, { widthMs: 600_000, now, signal });
  return { find, asked: () => asked };
};

describe("the search for a mark", () => {
  it("finds the next one", async () => {
    expect((await setUp().find(now - 25 * hour, 1))?.id).toBe(1);
    expect((await setUp().find(now - 20 * hour, 1))?.id).toBe(2);
    expect(await setUp().find(now - hour, 1)).toBeUndefined();
  });

  it("finds the previous one, however long ago, with few requests", async () => {
    const { find, asked } = setUp();
    expect((await find(now - hour, -1))?.id).toBe(2);
    expect(asked()).toBeLessThan(12);
    expect((await find(now - 19 * hour, -1))?.id).toBe(1);
    expect((await find(now - 20 * hour, -1))?.id).toBe(0);
    expect(await find(now - 30 * hour, -1)).toBeUndefined();
  });
});

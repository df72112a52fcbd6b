import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { PagedHistory, type PageQuery, type ReadPage } from "./paged-history.ts";

const setUp = (options: { isThinned?: boolean; most?: number; failing?: boolean } = {}) => {
  const asked: (PageQuery & { signal: AbortSignal })[] = [];
  const state = { now: 0, isFailing: options.failing ?? false };
  // An item for each second, three on a page.
  const read: ReadPage<number> = async (query, signal) => {
    asked.push({ ...query, signal });
    await Promise.resolve();
    if (state.isFailing) throw new Error("refused");
    const first = Math.max(Math.ceil(query.since / 1_000), (query.after ?? -1) + 1);
    const items = [first, first + 1, first + 2].filter((item) => item * 1_000 <= query.until);
    return { items, next: items.length === 3 ? items[2] : undefined };
  };
  const history = new PagedHistory({
    read,
    merge: (known, added) => [...new Set([...known, ...added])],
    onChange: () => {},
    now: () => state.now,
    most: options.most ?? 1_000,
    isThinned: options.isThinned ?? false,
  });
  const done = () => until("the history is read", () => !history.isReading);
  return { history, asked, state, done };
};

describe("the history of marks and readings", () => {
  it("is read in pages, with half as much around it, and not again for a short move", async () => {
    const { history, asked, done } = setUp();
    history.want({ from: 100_000, to: 110_000 }, 1_000_000);
    await done();
    expect([history.items.at(0), history.items.at(-1)]).toEqual([95, 115]);
    const count = asked.length;
    history.want({ from: 97_000, to: 107_000 }, 1_000_000);
    expect(history.isReading).toBe(false);
    history.want({ from: 80_000, to: 90_000 }, 1_000_000);
    await done();
    expect(asked.length).toBeGreaterThan(count);
    expect(history.items.at(0)).toBe(75);
  });

  it("ends where the stream starts", async () => {
    const { history, asked, done } = setUp();
    history.want({ from: 100_000, to: 110_000 }, 105_000);
    await done();
    expect(history.items.at(-1)).toBe(105);
    history.want({ from: 101_000, to: 111_000 }, 105_000);
    expect(history.isReading).toBe(false);
    const count = asked.length;
    history.want({ from: 106_000, to: 116_000 }, 105_000);
    expect([history.isReading, asked.length]).toEqual([false, count]);
  });

  it("cancels a request for what is not wanted any more", async () => {
    const { history, asked, done } = setUp();
    history.want({ from: 100_000, to: 110_000 }, 1_000_000);
    history.want({ from: 500_000, to: 510_000 }, 1_000_000);
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    await done();
    expect(history.items.at(0)).toBe(495);
  });

  it("keeps a bounded number of items and reports it", async () => {
    const { history, done } = setUp({ most: 10 });
    history.want({ from: 0, to: 100_000 }, 1_000_000);
    await done();
    expect(history.items.length).toBeLessThan(14);
    expect(history.isCut).toBe(true);
  });

  it("is thinned where the stretch is long, and read again in full when one zooms in", async () => {
    const { history, asked, done } = setUp({ isThinned: true });
    history.want({ from: 0, to: 800_000_000 }, 1_000_000_000);
    await done();
    expect(asked.at(0)?.step).toBe(1_000_000);
    history.want({ from: 100_000, to: 110_000 }, 1_000_000_000);
    expect(asked.at(-1)?.step).toBeLessThan(20);
    await done();
  });

  it("tries again some seconds after a failure", async () => {
    const { history, asked, state, done } = setUp({ failing: true });
    history.want({ from: 100_000, to: 110_000 }, 1_000_000);
    await done();
    expect(history.error).toBeInstanceOf(Error);
    history.want({ from: 100_000, to: 110_000 }, 1_000_000);
    expect(asked).toHaveLength(1);
    state.now = 10_000;
    state.isFailing = false;
    history.want({ from: 100_000, to: 110_000 }, 1_000_000);
    await done();
    expect(history.error).toBeUndefined();
  });
});

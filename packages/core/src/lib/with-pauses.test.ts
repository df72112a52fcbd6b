import { describe, expect, it } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { pause, withPauses } from "./with-pauses.ts";

/** A source to which the test pushes items. */
function pushed<T>() {
  const waiting: ((result: IteratorResult<T, undefined>) => void)[] = [];
  let ended = false;
  return {
    push: (value: T) => waiting.shift()!({ done: false, value }),
    end: () => waiting.shift()!({ done: true, value: undefined }),
    hasEnded: () => ended,
    next: () => new Promise<IteratorResult<T, undefined>>((resolve) => waiting.push(resolve)),
    return: async () => {
      ended = true;
      return { done: true as const, value: undefined };
    },
  };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A source of which one item was read. */
async function withFirstItem() {
  const source = pushed<string>();
  const items = withPauses(source, new FakeClock(), 1_000);
  const first = items.next();
  await settle();
  source.push("a");
  await first;
  return { source, items };
}

describe("withPauses", () => {
  it("yields items, and a pause each time none came for the while", async () => {
    const clock = new FakeClock();
    const source = pushed<string>();
    const items = withPauses(source, clock, 1_000);
    const first = items.next();
    await settle();
    await clock.step(999);
    source.push("a");
    expect((await first).value).toBe("a");
    const second = items.next();
    await settle();
    await clock.step(1_000);
    expect((await second).value).toBe(pause);
    const third = items.next();
    await settle();
    await clock.step(1_000);
    expect((await third).value).toBe(pause);
    const fourth = items.next();
    await settle();
    source.push("b");
    expect((await fourth).value).toBe("b");
    const last = items.next();
    await settle();
    source.end();
    expect((await last).done).toBe(true);
    expect(source.hasEnded()).toBe(true);
  });

  it("keeps an item that came while the consumer was busy", async () => {
    const { source, items } = await withFirstItem();
    const second = items.next();
    source.push("b");
    expect((await second).value).toBe("b");
  });

  it("ends the source when the consumer stops, and fails as the source fails", async () => {
    const { source, items } = await withFirstItem();
    await items.return(undefined);
    expect(source.hasEnded()).toBe(true);
    const failing = withPauses({ next: () => Promise.reject(new Error("torn")) }, new FakeClock(), 1_000);
    await expect(failing.next()).rejects.toThrow("torn");
  });
});

import { systemClock } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { inSlices } from "./slices.ts";

const never = new AbortController().signal;

/** A clock that only moves when a piece of work says how long it took. */
function workClock() {
  let elapsed = 0;
  const clock = { ...systemClock, monotonic: () => elapsed };
  const took = (ms: number) => {
    elapsed += ms;
  };
  return { clock, took };
}

describe("work in slices", () => {
  it("is done in order, all of it, in one go while it is short", async () => {
    const { clock } = workClock();
    const done: number[] = [];
    const working = inSlices(clock, [1, 2, 3], never, (item) => done.push(item));
    expect(done).toEqual([1, 2, 3]);
    expect(await working).toBeUndefined();
  });

  it("lets others have their turn", async () => {
    const { clock, took } = workClock();
    const order: string[] = [];
    const others = new Promise<void>((resolve) =>
      setImmediate(() => {
        order.push("others");
        resolve();
      }),
    );
    const working = inSlices(clock, ["a", "b", "c"], never, (item) => {
      order.push(item);
      took(3);
    });
    await Promise.all([working, others]);
    expect(order).toEqual(["a", "others", "b", "c"]);
  });

  it("stops when it took too long in all, and says how far it got", async () => {
    const { clock, took } = workClock();
    const done: number[] = [];
    const items = Array.from({ length: 100 }, (_, item) => item);
    const problem = await inSlices(clock, items, never, (item) => {
      done.push(item);
      took(60);
    });
    expect(done).toHaveLength(5);
    expect(problem).toMatchObject({
      code: "deadline",
      message: expect.stringContaining("300 ms for 5 cgroups"),
    });
  });

  it("stops with the signal's reason", async () => {
    const { clock, took } = workClock();
    const controller = new AbortController();
    const reason = new Error("enough");
    const done: number[] = [];
    const working = inSlices(clock, [1, 2, 3], controller.signal, (item) => {
      done.push(item);
      took(3);
    });
    controller.abort(reason);
    await expect(working).rejects.toBe(reason);
    expect(done).toEqual([1]);
  });
});

import { describe, expect, it } from "vitest";
import { inSlices } from "./slices.ts";

const never = new AbortController().signal;

/** CPU time that advances only when a piece of work reports its cost. */
function cpuTime() {
  let used = 0;
  const use = (ms: number) => {
    used += ms;
  };
  return { cpuMs: () => used, use };
}

describe("work in slices", () => {
  it("is done in order, all of it, in one go while it is short", async () => {
    const { cpuMs } = cpuTime();
    const done: number[] = [];
    const working = inSlices(cpuMs, [1, 2, 3], never, (item) => done.push(item));
    expect(done).toEqual([1, 2, 3]);
    expect(await working).toBeUndefined();
  });

  it("lets others have their turn", async () => {
    const { cpuMs, use } = cpuTime();
    const order: string[] = [];
    const others = new Promise<void>((resolve) =>
      setImmediate(() => {
        order.push("others");
        resolve();
      }),
    );
    const working = inSlices(cpuMs, ["a", "b", "c"], never, (item) => {
      order.push(item);
      use(3);
    });
    await Promise.all([working, others]);
    expect(order).toEqual(["a", "others", "b", "c"]);
  });

  it("stops when it has used too much CPU in all, and reports how far it got", async () => {
    const { cpuMs, use } = cpuTime();
    const done: number[] = [];
    const items = Array.from({ length: 100 }, (_, item) => item);
    const problem = await inSlices(cpuMs, items, never, (item) => {
      done.push(item);
      use(60);
    });
    expect(done).toHaveLength(5);
    expect(problem).toMatchObject({
      code: "deadline",
      message: expect.stringContaining("300 ms of CPU for 5 cgroups"),
    });
  });

  it("stops with the signal's reason", async () => {
    const { cpuMs, use } = cpuTime();
    const controller = new AbortController();
    const reason = new Error("enough");
    const done: number[] = [];
    const working = inSlices(cpuMs, [1, 2, 3], controller.signal, (item) => {
      done.push(item);
      use(3);
    });
    controller.abort(reason);
    await expect(working).rejects.toBe(reason);
    expect(done).toEqual([1]);
  });

  it("is not stopped by time on the clock but by the reading's deadline, its signal", async () => {
    const { cpuMs, use } = cpuTime();
    const deadline = new AbortController();
    const late = new Error("the reading's deadline");
    const done: number[] = [];
    const items = Array.from({ length: 100 }, (_, item) => item);
    const read = (most: number) =>
      inSlices(cpuMs, items, deadline.signal, (item) => {
        use(2.4);
        done.push(item);
        if (done.length === most) deadline.abort(late);
      });
    expect(await read(Number.POSITIVE_INFINITY)).toBeUndefined();
    expect(done).toHaveLength(100);
    await expect(read(150)).rejects.toBe(late);
  });
});

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { abortable, childScope, deadlineScope, withDeadline } from "./abort.ts";
import { FakeClock } from "./fake-clock.ts";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;
const never = new Promise<never>(() => {});

describe("childScope", () => {
  it("aborts with its parent's reason", () => {
    const parent = new AbortController();
    using scope = childScope(parent.signal);
    const reason = new Error("because");
    parent.abort(reason);
    expect(scope.signal.reason).toBe(reason);
  });

  it("is born aborted when its parent is", () => {
    const reason = new Error("before");
    expect(childScope(AbortSignal.abort(reason)).signal.reason).toBe(reason);
  });

  it("aborts alone, with a reason of the catalogue where none is given", () => {
    const parent = new AbortController();
    using scope = childScope(parent.signal);
    scope.abort();
    expect(scope.signal.reason).toMatchObject({ code: "stopped" });
    expect(parent.signal.aborted).toBe(false);
  });

  it("aborts with the reason of the first of several parents, and leaves no listener on any", () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const scope = childScope(first.signal, undefined, second.signal);
    const reason = new Error("second");
    second.abort(reason);
    first.abort(new Error("first"));
    expect(scope.signal.reason).toBe(reason);
    scope.release();
    expect([listeners(first.signal), listeners(second.signal)]).toEqual([0, 0]);
    expect(childScope(undefined, AbortSignal.abort(reason)).signal.reason).toBe(reason);
  });

  it("leaves no listener after release, and is not aborted later", () => {
    const parent = new AbortController();
    const scope = childScope(parent.signal);
    expect(listeners(parent.signal)).toBe(1);
    scope.release();
    expect(listeners(parent.signal)).toBe(0);
    parent.abort();
    expect(scope.signal.aborted).toBe(false);
  });
});

describe("deadlines", () => {
  it("abort with a deadline error that names the work", async () => {
    const clock = new FakeClock();
    using scope = deadlineScope(clock, { ms: 100, name: "asking a plugin" });
    await clock.step(99);
    expect(scope.signal.aborted).toBe(false);
    await clock.step(1);
    expect(scope.signal.reason).toMatchObject({
      code: "deadline",
      message: expect.stringContaining("asking a plugin"),
    });
  });

  it("give the result of work that is in time, and leave nothing behind", async () => {
    const clock = new FakeClock();
    const parent = new AbortController();
    expect(await withDeadline(clock, { ms: 100, name: "work" }, parent.signal, async () => 5)).toBe(5);
    expect(clock.timers).toBe(0);
    expect(listeners(parent.signal)).toBe(0);
  });

  it("give up on work that ignores its signal, and leave nothing behind", async () => {
    const clock = new FakeClock();
    const parent = new AbortController();
    const result = withDeadline(clock, { ms: 100, name: "work" }, parent.signal, () => never);
    const refused = expect(result).rejects.toMatchObject({ code: "deadline" });
    await clock.step(100);
    await refused;
    expect([clock.timers, listeners(parent.signal)]).toEqual([0, 0]);
  });

  it("pass on the parent's reason and the work's own error", async () => {
    const clock = new FakeClock();
    const parent = new AbortController();
    const reason = new Error("stop");
    const aborted = withDeadline(clock, { ms: 100, name: "work" }, parent.signal, () => never);
    parent.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    const failure = new Error("own");
    await expect(
      withDeadline(clock, { ms: 100, name: "work" }, undefined, () => Promise.reject(failure)),
    ).rejects.toBe(failure);
    expect(clock.timers).toBe(0);
  });
});

describe("abortable", () => {
  it("does not leave a late failure unhandled", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    let fail = (_: Error) => {};
    const controller = new AbortController();
    const work = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const result = abortable(work, controller.signal);
    controller.abort(new Error("enough"));
    await expect(result).rejects.toThrow("enough");
    await expect(abortable(work, controller.signal)).rejects.toThrow("enough");
    fail(new Error("late"));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    expect(listeners(controller.signal)).toBe(0);
  });
});

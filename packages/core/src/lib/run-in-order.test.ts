import { describe, expect, it } from "vitest";
import { FakeClock } from "./fake-clock.ts";
import { silentLogger } from "./log.ts";
import { type Runnable, runInOrder } from "./run-in-order.ts";

const options = (clock: FakeClock) => ({ clock, log: silentLogger, stopDeadlineMs: 1_000 });

function part(name: string, trace: string[], end?: Promise<void>): Runnable {
  return {
    name,
    async run(signal) {
      trace.push(`start ${name}`);
      await (end ?? new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())));
      trace.push(`end ${name}`);
    },
  };
}

describe("runInOrder", () => {
  it("starts in order and stops in reverse", async () => {
    const trace: string[] = [];
    const controller = new AbortController();
    const running = runInOrder(
      [part("a", trace), part("b", trace)],
      options(new FakeClock()),
      controller.signal,
    );
    controller.abort();
    expect(await running).toEqual([]);
    expect(trace).toEqual(["start a", "start b", "end b", "end a"]);
  });

  it("starts a part when the one before it is ready", async () => {
    const trace: string[] = [];
    const controller = new AbortController();
    const isReady = Promise.withResolvers<void>();
    const slow: Runnable = { ...part("slow", trace), ready: () => isReady.promise };
    const clock = new FakeClock();
    const running = runInOrder([slow, part("next", trace)], options(clock), controller.signal);
    await clock.step(10_000);
    expect(trace).toEqual(["start slow"]);
    isReady.resolve();
    await clock.step(0);
    expect(trace).toEqual(["start slow", "start next"]);
    controller.abort();
    await running;
    expect(trace).toEqual(["start slow", "start next", "end next", "end slow"]);
  });

  it("starts nothing after a part that fails before it is ready, or an abort meanwhile", async () => {
    const trace: string[] = [];
    const bad: Runnable = {
      name: "bad",
      run: () => Promise.reject(new Error("port in use")),
      ready: () => Promise.reject(new Error("port in use")),
    };
    const never = new AbortController().signal;
    const failing = runInOrder([part("a", trace), bad, part("b", trace)], options(new FakeClock()), never);
    await expect(failing).rejects.toThrow("bad: port in use");
    expect(trace).toEqual(["start a", "end a"]);

    trace.length = 0;
    const controller = new AbortController();
    const hung: Runnable = { ...part("hung", trace), ready: () => new Promise(() => {}) };
    const running = runInOrder([hung, part("b", trace)], options(new FakeClock()), controller.signal);
    controller.abort();
    await running;
    expect(trace).toEqual(["start hung", "end hung"]);
  });

  it("stops the others when one fails, and throws its error under its name", async () => {
    const trace: string[] = [];
    const bad: Runnable = { name: "bad", run: () => Promise.reject(new Error("boom")) };
    const running = runInOrder(
      [part("a", trace), bad],
      options(new FakeClock()),
      new AbortController().signal,
    );
    await expect(running).rejects.toThrow("bad: boom");
    expect(trace).toEqual(["start a", "end a"]);
  });

  it("treats an unexpected end as a failure", async () => {
    const done: Runnable = { name: "done", run: () => Promise.resolve() };
    await expect(runInOrder([done], options(new FakeClock()), new AbortController().signal)).rejects.toThrow(
      "done: stopped unexpectedly",
    );
  });

  it("leaves behind a part that hangs, and stops the others before it", async () => {
    const trace: string[] = [];
    const clock = new FakeClock();
    const controller = new AbortController();
    const hung: Runnable = { name: "hung", run: () => new Promise(() => {}) };
    const running = runInOrder([part("a", trace), hung], options(clock), controller.signal);
    controller.abort();
    await clock.step(999);
    expect(trace).toEqual(["start a"]);
    await clock.step(1);
    expect(await running).toEqual(["hung", "a"]);
    // The deadline has passed, but a is stopped nevertheless.
    expect(trace).toEqual(["start a", "end a"]);
  });
});

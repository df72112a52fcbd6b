import { describe, expect, it } from "vitest";
import { NodekeeperError } from "../lib/index.ts";
import { createHarness } from "./testing/harness.ts";

const state = async ({ metric }: ReturnType<typeof createHarness>) => {
  for (const state of ["starting", "healthy", "failing", "unsupported"]) {
    if ((await metric("hint_stream_state", { state })) === 1) return state;
  }
  return undefined;
};

/** A generator on a runtime with events, which it knows to be good. */
async function followed() {
  const harness = createHarness();
  const { runtime, clock } = harness;
  runtime.events = "on";
  runtime.addPod("a");
  runtime.set("a", "a1", "running");
  await harness.start();
  await clock.step(2_000);
  expect(await state(harness)).toBe("healthy");
  runtime.calls.listPods = 0;
  return harness;
}

describe("hints", () => {
  it("have their pod read at once, and all pods rarely", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    runtime.set("a", "a1", "exited");
    runtime.hint("a");
    await clock.step(0);
    expect(harness.told()).toEqual(["Died a1"]);
    await clock.step(28_900);
    expect(runtime.calls.listPods).toBe(0);
    await clock.step(1_100);
    expect(runtime.calls.listPods).toBe(1);
    expect(await harness.metric("hint_misses_total")).toBe(0);
    await harness.stop();
    expect([clock.timers, runtime.streams]).toEqual([0, 0]);
  });

  it("that are stale, doubled or of nobody do no harm", async () => {
    const harness = await followed();
    const { runtime, clock, generator } = harness;
    runtime.before = (call, _, signal) => (call === "listPod" ? runtime.delay(5, signal) : undefined);
    for (let replay = 0; replay < 5_000; replay++) runtime.hint(["a", "ghost", ""][replay % 3]!);
    await clock.step(1_000);
    expect(harness.told()).toEqual([]);
    expect(generator.statuses.uids()).toEqual(["a"]);
    expect(runtime.calls.listPod).toBeLessThan(10);
    expect(await harness.metric("hints_total")).toBe(5_000);
    await harness.stop();
  });

  it("that are missed are counted, and all pods read more often until none is", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    runtime.set("a", "a1", "exited");
    await clock.step(31_000);
    expect(harness.told()).toEqual(["Died a1"]);
    expect(await harness.metric("hint_misses_total")).toBe(1);
    runtime.calls.listPods = 0;
    await clock.step(1_000 + 2_000 + 4_000);
    expect(runtime.calls.listPods).toBeGreaterThanOrEqual(2);
    await clock.step(60_000);
    runtime.calls.listPods = 0;
    await clock.step(60_000);
    expect(runtime.calls.listPods).toBe(2);
    await harness.stop();
  });

  it("that come later than the list are not counted as missed", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    await clock.step(27_900);
    runtime.set("a", "a1", "exited");
    await clock.step(500);
    runtime.hint("a");
    await clock.step(10_000);
    expect(harness.told()).toEqual(["Died a1"]);
    expect(await harness.metric("hint_misses_total")).toBe(0);
    await harness.stop();
  });

  it("give way to the short period while the stream is broken, and come back with it", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    runtime.before = (call) => {
      if (call === "hints") throw new NodekeeperError("unavailable", "runtime restarts");
    };
    runtime.endStreams(new NodekeeperError("unavailable", "connection reset"));
    await clock.step(0);
    expect(await state(harness)).toBe("failing");
    runtime.calls.listPods = 0;
    runtime.calls.hints = 0;
    await clock.step(10_000);
    expect(runtime.calls.listPods).toBeGreaterThanOrEqual(9);
    expect(runtime.calls.hints).toBe(4);
    runtime.before = () => {};
    await clock.step(20_000);
    expect(await state(harness)).toBe("healthy");
    runtime.calls.listPods = 0;
    await clock.step(60_000);
    expect(runtime.calls.listPods).toBe(2);
    await harness.stop();
  });

  it("finds what happened while the stream was broken as soon as it is back", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    runtime.endStreams();
    runtime.set("a", "a1", "exited");
    await clock.step(1_000);
    expect(harness.told()).toEqual(["Died a1"]);
    await harness.stop();
  });

  it.each(["none", "off"] as const)("of a runtime with events %s are asked for once", async (events) => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    runtime.events = events;
    await harness.start();
    expect(await state(harness)).toBe("unsupported");
    await clock.step(600_000);
    expect(runtime.calls.hints).toBe(1);
    expect(runtime.calls.listPods).toBe(601);
    runtime.events = "on";
    runtime.runtimeVersion = "2.0";
    await clock.step(32_000);
    expect(await state(harness)).toBe("healthy");
    await harness.stop();
    expect(clock.timers).toBe(0);
  });

  it("are asked for again when the runtime restarted between two lists", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    await harness.start();
    expect(await state(harness)).toBe("unsupported");
    runtime.events = "on";
    await clock.step(5_000);
    expect(runtime.calls.hints).toBe(1);
    runtime.connected++;
    await clock.step(3_000);
    expect(await state(harness)).toBe("healthy");
    expect(runtime.calls.hints).toBe(2);
    await harness.stop();
  });

  it("are asked for again when the runtime was away", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    await harness.start();
    runtime.before = () => {
      throw new NodekeeperError("unavailable", "no such socket");
    };
    await clock.step(3_000);
    runtime.before = () => {};
    runtime.events = "on";
    await clock.step(3_000);
    expect(await state(harness)).toBe("healthy");
    await harness.stop();
  });

  it("leave those who wait for a pod no 30 seconds", async () => {
    const harness = await followed();
    const { clock, generator } = harness;
    const { signal } = new AbortController();
    const now = clock.monotonic();
    const waits = ["a", "ghost"].map((uid) => generator.statuses.getNewerThan(uid, now, signal));
    await clock.step(1_000);
    const entries = await Promise.all(waits);
    for (const { observedAt } of entries) expect(observedAt).toBe(now + 1_000);
    await harness.stop();
  });

  it("read a pod again soon that could not be inspected", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    runtime.before = (call) => {
      if (call === "podStatus") throw new NodekeeperError("internal", "not now");
    };
    runtime.set("a", "a1", "exited");
    runtime.hint("a");
    await clock.step(3_000);
    runtime.before = () => {};
    await clock.step(1_000);
    expect(harness.told()).toEqual(["Died a1"]);
    expect(runtime.calls.listPods).toBe(0);
    await harness.stop();
  });
});

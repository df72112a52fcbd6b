import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import type { LifecycleSettings } from "./settings.ts";
import { createHarness } from "./testing/harness.ts";

const state = async ({ metric }: ReturnType<typeof createHarness>) => {
  for (const state of ["starting", "healthy", "silent", "failing", "unsupported"]) {
    if ((await metric("hint_stream_state", { state })) === 1) return state;
  }
  return undefined;
};

const period = (harness: ReturnType<typeof createHarness>) => harness.metric("relist_period_seconds");

let pods = 0;

/** The emitted events, without those of pods that earned trust. */
const others = (harness: ReturnType<typeof createHarness>) =>
  harness.emitted().filter((line) => !line.includes("trusted"));

/** A change of a pod of its own with its hint, which earns the stream trust. */
function hintInTime({ runtime }: ReturnType<typeof createHarness>): void {
  const uid = `trusted${++pods}`;
  runtime.addPod(uid);
  runtime.hint(uid);
}

/** A generator on a runtime that sends its events to every subscriber, after a first hint on the stream. */
async function followed({
  runtimeName = "containerd",
  runtimeVersion = "v2.1.4",
  settings = {} as Partial<LifecycleSettings>,
} = {}) {
  const harness = createHarness({ settings });
  const { runtime, clock } = harness;
  Object.assign(runtime, { events: "on", runtimeName, runtimeVersion });
  runtime.addPod("a");
  runtime.set("a", "a1", "running");
  await harness.start();
  await clock.step(2_000);
  expect(await state(harness)).toBe("healthy");
  hintInTime(harness);
  await clock.step(3_000);
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
    expect(others(harness)).toEqual(["Died a1"]);
    await clock.step(20_000);
    expect(runtime.calls.listPods).toBe(0);
    await clock.step(10_000);
    expect(runtime.calls.listPods).toBe(1);
    expect(await harness.metric("hint_misses_total")).toBe(0);
    await harness.stop();
    expect([clock.timers, runtime.streams]).toEqual([0, 0]);
  });

  it("that are stale, duplicate or of no pod do no harm", async () => {
    await using harness = await followed();
    const { runtime, clock, generator } = harness;
    runtime.before = (call, _, signal) => (call === "listPod" ? runtime.delay(5, signal) : undefined);
    runtime.calls.listPod = 0;
    for (let replay = 0; replay < 5_000; replay++) runtime.hint(["a", "ghost", ""][replay % 3]!);
    await clock.step(1_000);
    expect(others(harness)).toEqual([]);
    expect(generator.statuses.uids()).not.toContain("ghost");
    expect(runtime.calls.listPod).toBeLessThan(10);
    expect(await harness.metric("hints_total")).toBe(5_001);
  });

  it("are no reason to list at the long period before one came on this very stream", async () => {
    await using harness = createHarness();
    const { runtime, clock } = harness;
    Object.assign(runtime, { events: "on", runtimeName: "containerd", runtimeVersion: "v2.1.4" });
    runtime.addPod("a");
    await harness.start();
    await clock.step(60_000);
    expect([await state(harness), await period(harness)]).toEqual(["healthy", 6]);
    runtime.hint("a");
    await clock.step(40_000);
    // Of nothing that has changed.
    expect(await period(harness)).toBe(10);
    hintInTime(harness);
    await clock.step(0);
    expect(await period(harness)).toBe(30);
    // Each subscription has to be proven: dead streams of an earlier one may take the events.
    runtime.endStreams();
    await clock.step(60_000);
    expect([await state(harness), await period(harness)]).toEqual(["healthy", 5.95]);
  });

  it.each([
    ["containerd", "v2.0.0", 30],
    ["containerd", "2.3.3+ds1", 30],
    ["cri-o", "1.33.1", 30],
    ["containerd", "1.7.24", 1],
    ["containerd", "v1.6.20", 1],
    ["another", "2.0.0", 1],
    ["containerd", "unknown", 1],
  ])("of %s %s: pods are listed every %d s after a hint", async (runtimeName, runtimeVersion, seconds) => {
    await using harness = await followed({ runtimeName, runtimeVersion });
    expect(await period(harness)).toBe(seconds);
  });

  it("that have not come yet make lists rare on a node on which nothing changes, until one is missed", async () => {
    await using harness = createHarness();
    const { runtime, clock } = harness;
    Object.assign(runtime, { events: "on", runtimeName: "containerd", runtimeVersion: "v2.1.4" });
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    await clock.step(10_000);
    expect([await state(harness), await period(harness), runtime.calls.listPods]).toEqual(["healthy", 1, 11]);
    await clock.step(40_000);
    expect(await period(harness)).toBe(5);
    await clock.step(60_000);
    expect(await period(harness)).toBe(10);
    runtime.calls.listPods = 0;
    await clock.step(600_000);
    expect([await period(harness), runtime.calls.listPods]).toEqual([10, 60]);
    runtime.set("a", "a1", "exited");
    await clock.step(11_000);
    expect(others(harness)).toEqual(["Died a1"]);
    await clock.step(400_000);
    expect([await state(harness), await period(harness)]).toEqual(["silent", 1]);
    expect(await harness.metric("hint_misses_total")).toBe(1);
  });

  it.each([
    ["containerd", "1.7.24"],
    ["another", "2.0.0"],
  ])("that %s %s need not send to all do not make lists rare", async (runtimeName, runtimeVersion) => {
    await using harness = createHarness();
    const { runtime, clock } = harness;
    Object.assign(runtime, { events: "on", runtimeName, runtimeVersion });
    await harness.start();
    await clock.step(600_000);
    expect([await state(harness), await period(harness)]).toEqual(["healthy", 1]);
  });

  it("that another subscriber takes delay nothing beyond the short period", async () => {
    await using harness = await followed({ runtimeVersion: "1.7.24" });
    const { runtime, clock } = harness;
    for (const uid of ["b", "c", "d"]) {
      runtime.addPod(uid);
      if (uid === "c") runtime.hint(uid);
      await clock.step(1_000);
      expect(others(harness).at(-1)).toBe(`Started ${uid}-sandbox`);
    }
  });

  it("that are missed are counted, and trusted again when one came in time and minutes without a miss have passed", async () => {
    await using harness = await followed();
    const { runtime, clock } = harness;
    runtime.set("a", "a1", "exited");
    await clock.step(31_000);
    expect(others(harness)).toEqual(["Died a1"]);
    expect(await harness.metric("hint_misses_total")).toBe(1);
    await clock.step(60_000);
    expect([await state(harness), await period(harness)]).toEqual(["silent", 1]);
    // Stale ones, as containerd sends them at each subscription, are no proof.
    runtime.hint("a");
    await clock.step(5_000);
    expect(await state(harness)).toBe("silent");
    hintInTime(harness);
    await clock.step(175_000);
    expect([await state(harness), await period(harness)]).toEqual(["healthy", 1]);
    await clock.step(61_000);
    expect(await period(harness)).toBe(30);
  });

  it("of a stream that fell silent are not trusted by the time alone, and the stream is opened again", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    runtime.calls.hints = 0;
    runtime.set("a", "a1", "exited");
    await clock.step(32_000);
    expect([runtime.calls.hints, runtime.streams]).toEqual([1, 1]);
    for (let minute = 0; minute < 20; minute++) await clock.step(60_000);
    expect([await state(harness), await period(harness)]).toEqual(["silent", 1]);
    expect(runtime.calls.hints).toBe(1);
    // While it misses changes it is opened again and again, ever more rarely.
    for (let change = 0; change < 60; change++) {
      runtime.set("a", `c${change}`, "running");
      await clock.step(2_000);
    }
    expect(runtime.calls.hints).toBeGreaterThan(3);
    expect(runtime.calls.hints).toBeLessThan(15);
    expect(await harness.metric("hint_misses_total")).toBeGreaterThan(50);
    expect([await state(harness), await period(harness), runtime.streams]).toEqual(["silent", 1, 1]);
    await harness.stop();
    expect(clock.timers).toBe(0);
  });

  it("are not missed for a change before the stream was open", async () => {
    await using harness = await followed();
    const { runtime, clock } = harness;
    while (runtime.calls.listPods === 0) await clock.step(100);
    await clock.step(15_000);
    runtime.set("a", "a1", "exited");
    runtime.endStreams();
    await clock.step(10_000);
    expect(others(harness)).toEqual(["Died a1"]);
    expect([await state(harness), await harness.metric("hint_misses_total")]).toEqual(["healthy", 0]);
  });

  it("have their pod read again where the first readings find nothing new", async () => {
    const harness = await followed();
    const { runtime, clock } = harness;
    // The event comes first, the runtime's lists show the change later.
    for (const [at, lateMs] of [90, 1_000].entries()) {
      const before = runtime.calls.listPod;
      runtime.hint("a");
      await clock.step(lateMs);
      runtime.set("a", `late${at}`, "running");
      await clock.step(1_100 - lateMs);
      expect(others(harness).at(-1)).toBe(`Started late${at}`);
      await clock.step(5_000);
      expect(runtime.calls.listPod - before).toBeLessThanOrEqual(3);
    }
    expect(await harness.metric("hint_misses_total")).toBe(0);
    await harness.stop();
    expect(clock.timers).toBe(0);
  });

  it("have their pod read again also where a list answers the request before its turn", async () => {
    await using harness = await followed({
      settings: { maxInspections: 1, inspectionPatience: 60_000 },
    });
    const { runtime, clock } = harness;
    // The runtime is slow with one pod, so that the other one waits; a list comes and has nothing new of it yet.
    runtime.before = (call, uid, signal) =>
      call === "listPod" && uid === "slow" ? runtime.delay(3_000, signal) : undefined;
    runtime.hint("slow");
    await clock.step(10);
    runtime.hint("a");
    await clock.step(10);
    runtime.hint("");
    await clock.step(1_500);
    expect([runtime.calls.listPods, await harness.metric("requests_answered_total")]).toEqual([1, 1]);
    runtime.set("a", "late", "running");
    await clock.step(5_000);
    expect(runtime.calls.listPods).toBe(1);
    expect(others(harness).at(-1)).toBe("Started late");
  });

  it("of pods that came and went leave room for others to be read again", async () => {
    await using harness = await followed({ settings: { requestLimit: 3 } });
    const { runtime, clock } = harness;
    for (let at = 0; at < 10; at++) {
      runtime.addPod(`p${at}`);
      runtime.set(`p${at}`, `p${at}-1`, "created");
      runtime.hint(`p${at}`);
      await clock.step(0);
      if (at % 2 === 0) runtime.removePod(`p${at}`);
      else runtime.set(`p${at}`, `p${at}-2`, "created");
      runtime.hint(`p${at}`);
      await clock.step(0);
    }
    runtime.hint("a");
    await clock.step(90);
    runtime.set("a", "late", "running");
    await clock.step(20);
    expect(others(harness).at(-1)).toBe("Started late");
  });

  it("whose change a list shows first are not counted as missed", async () => {
    await using harness = await followed();
    const { runtime, clock } = harness;
    // The reading that the hint asks for is older than the change; a list that follows shows it.
    runtime.hint("a");
    await clock.step(10);
    runtime.set("a", "a1", "exited");
    runtime.hint("");
    await clock.step(0);
    expect(runtime.calls.listPods).toBe(1);
    await clock.step(5_000);
    expect(others(harness)).toEqual(["Died a1"]);
    expect(await harness.metric("hint_misses_total")).toBe(0);
  });

  it("carry the exit code of a container that is removed before it can be inspected", async () => {
    await using harness = await followed();
    const { runtime, clock } = harness;
    runtime.remove("a", "a1");
    runtime.hint("a", [{ containerId: "a1", exitCode: 42, reason: "Error" }]);
    await clock.step(0);
    expect(others(harness)).toEqual(["Died a1", "Removed a1"]);
    expect(harness.generator.events.get(harness.generator.events.last - 1)).toMatchObject({
      exitCode: 42,
      reason: "Error",
    });
  });

  it("that come later than the list are not counted as missed", async () => {
    await using harness = await followed();
    const { runtime, clock } = harness;
    while (runtime.calls.listPods === 0) await clock.step(100);
    await clock.step(29_700);
    runtime.set("a", "a1", "exited");
    await clock.step(500);
    runtime.hint("a");
    await clock.step(10_000);
    expect(others(harness)).toEqual(["Died a1"]);
    expect(await harness.metric("hint_misses_total")).toBe(0);
  });

  it("are not missed for a pod that has not changed and is read while a list is in progress", async () => {
    await using harness = await followed();
    const { runtime, clock, generator } = harness;
    runtime.before = (call, _, signal) => (call === "listPods" ? runtime.delay(40, signal) : undefined);
    while (runtime.calls.listPods === 0) await clock.step(10);
    const read = generator.readNow("a", new AbortController().signal);
    await clock.step(5_000);
    expect((await read).error).toBeUndefined();
    expect(await harness.metric("hint_misses_total")).toBe(0);
    expect(await period(harness)).toBe(30);
  });

  it.each([
    ["that the runtime takes long to inspect", {}],
    ["that waits for a slow inspection of another", { maxInspections: 1 }],
  ])("are not missed for a pod %s", async (_, settings) => {
    await using harness = await followed({ settings });
    const { runtime, clock } = harness;
    runtime.before = (call, __, signal) => (call === "podStatus" ? runtime.delay(1_900, signal) : undefined);
    for (const uid of ["b", "a"]) {
      if (uid === "b") runtime.addPod(uid);
      else runtime.set("a", "a1", "exited");
      runtime.hint(uid);
      await clock.step(10);
    }
    await clock.step(1_200);
    // Requests a list.
    runtime.hint("");
    await clock.step(10);
    expect([runtime.calls.listPods, others(harness)]).toEqual([1, []]);
    await clock.step(10_000);
    expect(others(harness)).toEqual(["Started b-sandbox", "Died a1"]);
    expect(await harness.metric("hint_misses_total")).toBe(0);
  });

  it("give way to the short period while the stream is broken, and come back with it", async () => {
    await using harness = await followed();
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
    hintInTime(harness);
    await clock.step(2_000);
    runtime.calls.listPods = 0;
    await clock.step(60_000);
    expect(runtime.calls.listPods).toBe(2);
  });

  it("finds what happened while the stream was broken as soon as it is back", async () => {
    await using harness = await followed();
    const { runtime, clock } = harness;
    runtime.endStreams();
    runtime.set("a", "a1", "exited");
    await clock.step(1_000);
    expect(others(harness)).toEqual(["Died a1"]);
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
    await using harness = createHarness();
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
  });

  it("are requested again after the runtime was unavailable", async () => {
    await using harness = createHarness();
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
  });

  it("leave those who wait for a pod no 30 seconds", async () => {
    await using harness = await followed();
    const { clock, generator } = harness;
    const { signal } = new AbortController();
    const now = clock.monotonic();
    const waits = ["a", "ghost"].map((uid) => generator.statuses.getNewerThan(uid, now, signal));
    await clock.step(1_000);
    const entries = await Promise.all(waits);
    for (const { observedAt } of entries) expect(observedAt).toBe(now + 1_000);
  });

  it("read a pod again soon that could not be inspected", async () => {
    await using harness = await followed();
    const { runtime, clock } = harness;
    runtime.before = (call) => {
      if (call === "podStatus") throw new NodekeeperError("internal", "not now");
    };
    runtime.set("a", "a1", "exited");
    runtime.hint("a");
    await clock.step(3_000);
    runtime.before = () => {};
    await clock.step(1_000);
    expect(others(harness)).toEqual(["Died a1"]);
    expect(runtime.calls.listPods).toBe(0);
  });
});

import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { createHarness, startedWithPod } from "./testing/harness.ts";

const unavailable = () => new NodekeeperError("unavailable", "ListPodSandbox: connection refused");
const live = new AbortController().signal;

describe("health", () => {
  it("names the call that hangs, how long, how many pods, and the last error", async () => {
    await using harness = createHarness();
    const { runtime, clock, generator } = harness;
    const check = generator.healthCheck();
    expect(check.check()).toEqual({ ok: false, message: "not running" });
    runtime.addPod("a");
    await harness.start();
    expect(check.check().ok).toBe(true);
    runtime.before = () => {
      throw unavailable();
    };
    await clock.step(1_000);
    runtime.before = (_, __, signal) => runtime.delay(600_000, signal);
    await clock.step(178_000);
    expect(check.check().ok).toBe(true);
    expect(await harness.metric("relist_in_flight_seconds")).toBeGreaterThan(50);
    await clock.step(2_000);
    const { ok, message } = check.check();
    expect(ok).toBe(false);
    expect(message).toMatch(
      /^last successful relist started 3m1s ago \(threshold 3m\); in progress: list of all pods \(1 known\) for \d+s/,
    );
    expect(message).toContain("last error");
    runtime.before = () => {};
    await clock.step(125_000);
    expect(check.check().ok).toBe(true);
  });

  it("names a runtime that hangs within 5 s, also while all pods are listed rarely", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    Object.assign(runtime, { events: "on", runtimeName: "containerd", runtimeVersion: "v2.1.4" });
    await harness.start();
    await clock.step(2_000);
    runtime.addPod("a");
    runtime.hint("a");
    await clock.step(5_000);
    expect(await harness.metric("relist_period_seconds")).toBe(30);
    expect(generator.healthCheck().check().warning).toBeUndefined();
    // As one that is stopped with SIGSTOP, or whose disk hangs.
    runtime.before = (call, _, signal) => (call === "hints" ? undefined : runtime.delay(13_000, signal));
    await clock.step(5_000);
    expect(generator.healthCheck().check()).toMatchObject({
      ok: true,
      warning: expect.stringMatching(/no response yet to: version for [2-5]s/),
    });
    runtime.before = () => {};
    await clock.step(15_000);
    expect(generator.healthCheck().check().warning).toBeUndefined();
    await harness.stop();
    expect(clock.timers).toBe(0);
  });

  it("fails with the reason until all pods have been read once", async () => {
    await using harness = createHarness({ settings: { unhealthyAfter: 180_000 } });
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    runtime.before = () => {
      throw unavailable();
    };
    const check = () => generator.healthCheck().check();
    await harness.start();
    expect(check().ok).toBe(false);
    await clock.step(11_000);
    expect(check().ok).toBe(false);
    expect(check().message).toContain("no relist has succeeded since the start 11s ago");
    expect(check().message).toContain("ListPodSandbox: connection refused");
    expect(await harness.metric("relist_failures_total", { code: "unavailable" })).toBe(12);
    runtime.before = (call, _, signal) => (call === "podStatus" ? runtime.delay(500, signal) : undefined);
    await clock.step(1_000);
    expect(check()).toEqual({
      ok: false,
      message:
        "last successful relist started 0s ago; first inspection of all pods in progress; in progress: inspection of 1 changed pods for 0s",
    });
    await clock.step(500);
    expect(check().ok).toBe(true);
  });

  it("names the calls and the pods with which the runtime is slow, while it is", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    for (const uid of ["a", "b"]) runtime.addPod(uid);
    await harness.start();
    expect(generator.problems()).toEqual([]);
    runtime.before = (call, uid, signal) =>
      call === "podStatus" && uid === "a" ? runtime.delay(20_000, signal) : undefined;
    runtime.set("a", "a1", "running");
    await clock.step(13_000);
    expect(generator.healthCheck().check()).toMatchObject({
      ok: true,
      warning: expect.stringContaining("slow: status of pod default/pod-a for 12s"),
      errorId: "NK1407",
    });
    expect(generator.problems()).toEqual([
      "slow: status of pod default/pod-a for 12s",
      "no response yet to: podStatus of a for 12s",
      "can't inspect 1 pod, whose status is stale",
    ]);
    expect(generator.statuses.get("a").error?.message).toMatch(/status of pod default\/pod-a: no response/);
    expect(harness.logged("container runtime is not responding")).toMatchObject([
      { waitingFor: expect.arrayContaining([expect.stringContaining("status of pod default/pod-a")]) },
    ]);
    await clock.step(20_000);
    expect(generator.problems()).toEqual([]);
    expect(harness.logged("container runtime is responding again")).toHaveLength(1);
    await harness.stop();
    expect(clock.timers).toBe(0);
  });

  it("reads pods that failed also while a list of all pods hangs", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    runtime.addPod("a");
    await harness.start();
    runtime.before = (call) => {
      if (call === "podStatus") throw unavailable();
    };
    runtime.set("a", "a1", "running");
    await clock.step(1_000);
    runtime.before = (call, _, signal) => (call === "listPods" ? runtime.delay(100_000, signal) : undefined);
    await clock.step(2_500);
    expect(harness.emitted()).toEqual(["Started a1"]);
    await harness.stop();
    expect(clock.timers).toBe(0);
  });

  it("is not misled by a clock that jumps back", async () => {
    await using harness = createHarness();
    const { runtime, clock, generator } = harness;
    await harness.start();
    clock.jump(-3_600_000);
    runtime.addPod("a");
    const waited = generator.statuses.getNewerThan("a", clock.monotonic(), live);
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["Started a-sandbox"]);
    expect((await waited).status.ips).toHaveLength(1);
    expect(generator.healthCheck().check().ok).toBe(true);
  });
});

describe("metrics", () => {
  it("report 0 for states without containers", async () => {
    await using harness = await startedWithPod();
    const { runtime, clock } = harness;
    expect(await harness.metric("containers", { kind: "container", state: "running" })).toBe(1);
    runtime.set("a", "a1", "exited");
    await clock.step(1_000);
    expect(await harness.metric("containers", { kind: "container", state: "running" })).toBe(0);
    expect(await harness.metric("containers", { kind: "container", state: "exited" })).toBe(1);
    expect(await harness.metric("inspections_total")).toBe(2);
  });
});

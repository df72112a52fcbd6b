import { FakeClock, NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { createHarness } from "./testing/harness.ts";
import { MemoryRuntime } from "./testing/memory-runtime.ts";

const _unavailable = () => new NodekeeperError("unavailable", "ListPodSandbox: connection refused");
const live = new AbortController().signal;

describe("requestRelist", () => {
  it("reads one pod at once", async () => {
    await using harness = createHarness({ settings: { relistPeriod: 60_000 } });
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    await harness.start();
    runtime.set("a", "a1", "running");
    generator.requestRelist("a");
    generator.requestRelist("a");
    await clock.step(0);
    expect(harness.emitted()).toEqual(["Started a1"]);
    expect(runtime.calls.listPods).toBe(1);
  });

  it("wakes those who wait when the pod is as it was, or is not there", async () => {
    await using harness = createHarness({ settings: { relistPeriod: 60_000 } });
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    await harness.start();
    await clock.step(10);
    const waits = ["a", "ghost"].map((uid) => generator.statuses.getNewerThan(uid, 5, live));
    generator.requestRelist("a");
    generator.requestRelist("ghost");
    await clock.step(0);
    const [a, ghost] = await Promise.all(waits);
    expect([a?.observedAt, a?.modifiedAt]).toEqual([10, 10]);
    expect(ghost?.status).toMatchObject({ uid: "ghost", containers: [] });
  });

  it("drops requests satisfied by a later list, and relists if there are too many", async () => {
    await using harness = createHarness({
      settings: {
        requestLimit: 5,
        maxInspections: 1,
        inspectionPatience: 60_000,
      },
    });
    const { runtime, clock, generator } = harness;
    await harness.start();
    runtime.before = (call, _, signal) => (call === "listPod" ? runtime.delay(5_000, signal) : undefined);
    for (let at = 0; at < 10; at++) generator.requestRelist(`ghost${at}`);
    expect(await harness.metric("requests_refused_total")).toBe(4);
    await clock.step(1_000);
    expect(await harness.metric("requests_answered_total")).toBe(5);
    await clock.step(10_000);
    expect(runtime.calls.listPod).toBe(1);
  });

  it("does not let a list that is older undo what was read alone", async () => {
    const clock = new FakeClock();
    const runtime = new MemoryRuntime(clock);
    await using harness = createHarness({ runtime, clock });
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    // The list is made now and arrives 500 ms later; meanwhile the container ends and the pod is read alone.
    runtime.after = (call) => (call === "listPods" ? clock.sleep(500) : undefined);
    await clock.step(1_100);
    runtime.set("a", "a1", "exited");
    harness.generator.requestRelist("a");
    await clock.step(3_000);
    expect(harness.emitted()).toEqual(["Died a1"]);
    await clock.step(1_000);
  });
});

import { FakeClock, NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { createHarness } from "./testing/harness.ts";
import { MemoryRuntime } from "./testing/memory-runtime.ts";

const unavailable = () => new NodekeeperError("unavailable", "ListPodSandbox: connection refused");
const live = new AbortController().signal;

describe("relist", () => {
  it("emits no events for the first relist, and events for changes after it", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    expect(harness.emitted()).toEqual([]);
    expect(generator.statuses.get("a").status.ips).toEqual(["10.0.0.1"]);

    runtime.set("a", "a1", "exited", "container", 3);
    runtime.addPod("b");
    runtime.set("b", "b1", "created");
    await clock.step(1_000);
    runtime.set("b", "b1", "running");
    await clock.step(1_000);
    runtime.remove("a", "a1");
    runtime.removePod("b");
    await clock.step(1_000);
    expect(harness.emitted()).toEqual([
      "Died a1",
      "Started b-sandbox",
      "Started b1",
      "Removed a1",
      "Died b1",
      "Removed b1",
      "Died b-sandbox",
      "Removed b-sandbox",
    ]);
    expect(generator.events.get(1)).toMatchObject({
      sequence: 1,
      at: clock.now() - 2_000,
      pod: { uid: "a", namespace: "default", name: "pod-a" },
      container: { id: "a1", kind: "container" },
      exitCode: 3,
      reason: "Error",
    });
    expect(generator.statuses.uids()).toEqual(["a"]);
    await harness.stop();
  });

  it("resolves waiting callers when all pods have been read", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    const controller = new AbortController();
    const given = generator.listed(controller.signal).catch((error: unknown) => error);
    controller.abort(new Error("enough"));
    expect(await given).toMatchObject({ message: "enough" });
    runtime.addPod("a");
    runtime.before = () => {
      throw unavailable();
    };
    let seen: number | undefined;
    void generator.listed(live).then(() => {
      seen = generator.events.snapshot().length;
    });
    await harness.start();
    expect(seen).toBeUndefined();
    runtime.before = () => undefined;
    await clock.step(1_000);
    expect(seen).toBe(1);
    await generator.listed(live);
    await harness.stop();
  });

  it("lets an early consumer wait for the first list, and fails with the reason after a time limit", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    runtime.before = () => {
      throw unavailable();
    };
    const first = generator.events.read({}, live).next();
    // As a part of the agent with a position that an earlier log gave: it must not end because the runtime is unavailable.
    const second = generator.events.read({ after: { log: "earlier", sequence: 7 } }, live).next();
    await harness.start();
    const refused = generator.listedSoon(live).catch((error: unknown) => error);
    await clock.step(10_000);
    const message = expect.stringMatching(
      /^no relist has succeeded since the start 10s ago.*connection refused/,
    );
    expect(await refused).toMatchObject({ code: "unavailable", message });
    await clock.step(60_000);
    const later = generator.listedSoon(live).catch((error: unknown) => error);
    await clock.step(1_000);
    expect(await later).toMatchObject({ code: "unavailable" });
    runtime.before = () => undefined;
    await clock.step(1_000);
    expect((await first).value).toMatchObject({ kind: "snapshot", why: "begin", pods: [{ uid: "a" }] });
    expect((await second).value).toMatchObject({ kind: "snapshot", why: "fellOff", pods: [{ uid: "a" }] });
    await harness.stop();
  });

  it("lets a consumer leave that waits for the first list", async () => {
    const harness = createHarness();
    const controller = new AbortController();
    const waiting = harness.generator.events.read({}, controller.signal).next();
    controller.abort(new Error("enough"));
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(harness.generator.events.consumers).toBe(0);
  });

  it("waits the period from the end of a relist, and never runs two", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    runtime.before = (call, _, signal) => (call === "listPods" ? runtime.delay(5_000, signal) : undefined);
    await harness.start();
    await clock.step(4_999);
    expect(runtime.calls.listPods).toBe(1);
    await clock.step(1_000);
    expect(runtime.calls.listPods).toBe(1);
    await clock.step(1);
    expect(runtime.calls.listPods).toBe(2);
    await harness.stop();
    expect(clock.timers).toBe(0);
  });

  it("keeps the record of a pod that cannot be inspected, and emits its events when it can", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    for (const uid of ["a", "b"]) {
      runtime.addPod(uid);
      runtime.set(uid, `${uid}1`, "running");
    }
    await harness.start();
    runtime.before = (call, uid) => {
      if (call === "podStatus" && uid === "a") throw new NodekeeperError("internal", "no status today");
    };
    runtime.set("a", "a1", "exited");
    runtime.set("b", "b1", "exited");
    const failed = generator.statuses.getNewerThan("a", clock.monotonic(), live);
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["Died b1"]);
    expect((await failed).error?.message).toBe("no status today");
    expect((await failed).status.containers[0]?.state).toBe("running");
    expect(generator.healthCheck().check()).toMatchObject({ ok: true });
    expect(generator.healthCheck().check().message).toContain(
      "1 pods cannot be inspected, their statuses are stale",
    );
    await clock.step(3_000);
    expect(harness.emitted()).toEqual(["Died b1"]);
    runtime.before = () => {};
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["Died b1", "Died a1"]);
    expect(generator.statuses.get("a").error).toBeUndefined();
    await harness.stop();
  });

  it("emits what a reading finds that outlives the first list: the snapshot has its pod as failed", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    for (const uid of ["slow", "well"]) {
      runtime.addPod(uid);
      runtime.set(uid, `${uid}1`, "running");
    }
    runtime.before = (call, uid, signal) =>
      call === "podStatus" && uid === "slow" ? runtime.delay(60_000, signal) : undefined;
    await harness.start();
    await clock.step(30_000);
    expect(generator.statuses.get("slow").error?.message).toMatch(/no response/);
    expect(generator.events.snapshot().map(({ uid }) => uid)).toEqual(["well"]);
    runtime.set("slow", "slow1", "exited");
    await clock.step(40_000);
    expect(generator.statuses.get("slow").error).toBeUndefined();
    expect(harness.emitted()).toEqual(["Started slow-sandbox", "Started slow1", "Died slow1"]);
    await harness.stop();
  });

  it("emits PodSync when a pod can be inspected again and has not changed", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    runtime.addPod("a");
    await harness.start();
    runtime.set("a", "a1", "created");
    runtime.before = (call) => {
      if (call === "podStatus") throw unavailable();
    };
    await clock.step(1_000);
    runtime.remove("a", "a1");
    runtime.before = () => {};
    await clock.step(3_000);
    expect(harness.emitted()).toEqual(["PodSync a"]);
    await harness.stop();
  });

  it("has the cache entry before its events are seen", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    await harness.start();
    const reader = generator.events.read({}, live);
    await reader.next();
    const seen = reader.next().then(({ value }) => [value?.kind, generator.statuses.get("a").status.ips]);
    runtime.addPod("a", ["10.1.1.1"]);
    await clock.step(1_000);
    expect(await seen).toEqual(["event", ["10.1.1.1"]]);
    await reader.return?.();
    await harness.stop();
  });

  it("takes 10,000 containers that die at once", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    for (let at = 0; at < 10_000; at++) runtime.set("a", `a${at}`, "running");
    await harness.start();
    for (let at = 0; at < 10_000; at++) runtime.set("a", `a${at}`, "exited", "container", 9);
    await clock.step(1_000);
    expect(generator.events.last).toBe(10_000);
    expect(generator.events.get(10_000)?.exitCode).toBe(9);
    await harness.stop();
  });

  it("keeps the last addresses of a finished pod", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a", ["10.9.9.9"]);
    await harness.start();
    runtime.pods.get("a")!.ips = [];
    runtime.set("a", "a-sandbox", "exited", "sandbox");
    await clock.step(1_000);
    expect(generator.statuses.get("a").status.ips).toEqual(["10.9.9.9"]);
    runtime.set("a", "a-again", "running", "sandbox");
    await clock.step(1_000);
    expect(generator.statuses.get("a").status.ips).toEqual([]);
    await harness.stop();
  });

  it("ignores an exit that the inspection contradicts", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    runtime.lie = (pod) => ({ ...pod, containers: pod.containers.map((c) => ({ ...c, state: "exited" })) });
    await clock.step(3_000);
    expect(harness.emitted()).toEqual([]);
    runtime.lie = (pod) => pod;
    await clock.step(2_000);
    expect(harness.emitted()).toEqual([]);
    runtime.set("a", "a1", "exited");
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["Died a1"]);
    await harness.stop();
  });

  it("takes an exit that the inspection shows and the list does not have yet: cache, records and log agree", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    runtime.set("a", "a2", "created");
    await harness.start();
    // The list is answered, then the container exits, then it is inspected.
    runtime.after = (call) => {
      if (call !== "listPods") return;
      for (const id of ["a1", "brief"]) runtime.set("a", id, "exited", "container", 5);
    };
    runtime.set("a", "a2", "running");
    runtime.set("a", "brief", "running");
    await clock.step(1_000);
    // What the list saw run for the first time has started, short as it was.
    expect(harness.emitted()).toEqual(["Started a2", "Started brief", "Died a1", "Died brief"]);
    const states = { a1: "exited", a2: "running", brief: "exited" };
    expect(statesIn(generator.statuses.get("a").status.containers)).toEqual(states);
    expect(statesIn(generator.events.snapshot()[0]!.containers)).toEqual(states);
    await clock.step(3_000);
    expect(harness.emitted()).toHaveLength(4);
    await harness.stop();
  });

  it("takes a container that is removed between list and inspection for removed, in cache, records and log", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    runtime.set("a", "a2", "running");
    runtime.after = (call) => {
      if (call === "listPods") runtime.remove("a", "a1");
    };
    await clock.step(1_000);
    expect(harness.emitted().sort()).toEqual(["Died a1", "Removed a1", "Started a2"]);
    expect(statesIn(generator.statuses.get("a").status.containers)).toEqual({ a2: "running" });
    expect(statesIn(generator.events.snapshot()[0]!.containers)).toEqual({ a2: "running" });
    await harness.stop();
  });

  it("does not take a container for removed that is listed and has no status", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    const ghost = { ...runtime.pods.get("a")!.containers.get("a1")!, id: "ghost" };
    runtime.lie = (pod) => ({ ...pod, containers: [...pod.containers, ghost] });
    await clock.step(3_000);
    expect(harness.emitted()).toEqual([]);
    expect(generator.statuses.get("a").error?.message).toBe(
      "container ghost is listed, but the runtime returns no status for it",
    );
    runtime.lie = (pod) => pod;
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["PodSync a"]);
    await harness.stop();
  });

  it("confirms by a second list that a running container was removed", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    let lies = 1;
    runtime.lie = (pod) => (lies-- > 0 ? undefined : pod);
    await clock.step(1_000);
    expect(harness.emitted()).toEqual([]);
    await harness.stop();
  });

  it("inspects changed pods side by side", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    await harness.start();
    for (let at = 0; at < 100; at++) runtime.addPod(`p${at}`);
    runtime.before = (call, _, signal) => (call === "podStatus" ? runtime.delay(20, signal) : undefined);
    await clock.step(1_000);
    await clock.step(200);
    expect(harness.emitted()).toHaveLength(100);
    await harness.stop();
  });

  it("leaves a pod behind with which the runtime hangs, and continues with the others", async () => {
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    runtime.addPod("b");
    await harness.start();
    runtime.before = (call, uid, signal) =>
      call === "podStatus" && uid === "a" ? runtime.delay(30_000, signal) : undefined;
    runtime.set("a", "a1", "running");
    await clock.step(5_000);
    runtime.set("b", "b1", "running");
    await clock.step(1_001);
    expect(harness.emitted()).toEqual(["Started b1"]);
    expect(generator.statuses.get("a").error?.message).toContain("status of pod default/pod-a: no response");
    expect(generator.healthCheck().check().ok).toBe(true);
    await clock.step(30_000);
    expect(harness.emitted()).toEqual(["Started b1", "Started a1"]);
    expect(generator.statuses.get("a").error).toBeUndefined();
    await harness.stop();
    expect(clock.timers).toBe(0);
  });
});

describe("health", () => {
  it("names the call that hangs, how long, how many pods, and the last error", async () => {
    const harness = createHarness();
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
    await harness.stop();
  });

  it("fails with the reason until all pods have been read once", async () => {
    const harness = createHarness({ settings: { unhealthyAfterMs: 180_000 } });
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
    await harness.stop();
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
      "1 pods cannot be inspected, their statuses are stale",
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
    const harness = createHarness();
    const { runtime, clock, generator } = harness;
    await harness.start();
    clock.jump(-3_600_000);
    runtime.addPod("a");
    const waited = generator.statuses.getNewerThan("a", clock.monotonic(), live);
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["Started a-sandbox"]);
    expect((await waited).status.ips).toHaveLength(1);
    expect(generator.healthCheck().check().ok).toBe(true);
    await harness.stop();
  });
});

describe("metrics", () => {
  it("report 0 for states without containers", async () => {
    const harness = createHarness();
    const { runtime, clock } = harness;
    runtime.addPod("a");
    runtime.set("a", "a1", "running");
    await harness.start();
    expect(await harness.metric("containers", { kind: "container", state: "running" })).toBe(1);
    runtime.set("a", "a1", "exited");
    await clock.step(1_000);
    expect(await harness.metric("containers", { kind: "container", state: "running" })).toBe(0);
    expect(await harness.metric("containers", { kind: "container", state: "exited" })).toBe(1);
    expect(await harness.metric("inspections_total")).toBe(2);
    await harness.stop();
  });
});

describe("requestRelist", () => {
  it("reads one pod at once", async () => {
    const harness = createHarness({ settings: { relistPeriodMs: 60_000 } });
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    await harness.start();
    runtime.set("a", "a1", "running");
    generator.requestRelist("a");
    generator.requestRelist("a");
    await clock.step(0);
    expect(harness.emitted()).toEqual(["Started a1"]);
    expect(runtime.calls.listPods).toBe(1);
    await harness.stop();
  });

  it("wakes those who wait when the pod is as it was, or is not there", async () => {
    const harness = createHarness({ settings: { relistPeriodMs: 60_000 } });
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    await harness.start();
    await clock.step(10);
    const waits = ["a", "ghost"].map((uid) => generator.statuses.getNewerThan(uid, 5, live));
    generator.requestRelist("a");
    generator.requestRelist("ghost");
    await clock.step(0);
    const [a, ghost] = await Promise.all(waits);
    expect([a?.observedAt, a?.modifiedAt]).toEqual([10, 0]);
    expect(ghost?.status).toMatchObject({ uid: "ghost", containers: [] });
    await harness.stop();
  });

  it("drops requests satisfied by a later list, and relists if there are too many", async () => {
    const harness = createHarness({
      settings: {
        requestLimit: 5,
        inspections: { initial: 1, min: 1, max: 1 },
        inspectionPatienceMs: 60_000,
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
    await harness.stop();
  });

  it("does not let a list that is older undo what was read alone", async () => {
    const clock = new FakeClock();
    const runtime = new MemoryRuntime(clock);
    const harness = createHarness({ runtime, clock });
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
    await harness.stop();
  });
});

function statesIn(containers: readonly { id: string; state: string }[]): Record<string, string> {
  return Object.fromEntries(containers.map(({ id, state }) => [id, state]));
}

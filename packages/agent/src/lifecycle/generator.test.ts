import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { createHarness, startedWithPod } from "./testing/harness.ts";
import type { MemoryRuntime } from "./testing/memory-runtime.ts";

const unavailable = () => new NodekeeperError("unavailable", "ListPodSandbox: connection refused");
const live = new AbortController().signal;

describe("relist", () => {
  it("emits no events for the first relist, and events for changes after it", async () => {
    await using harness = await startedWithPod();
    const { runtime, clock, generator } = harness;
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
  });

  it("resolves waiting callers when all pods have been read", async () => {
    await using harness = createHarness();
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
  });

  it("lets an early consumer wait for the first list, and fails with the reason after a time limit", async () => {
    await using harness = createHarness();
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
      /^no relist has succeeded since the start 8s ago.*connection refused/,
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
    await using harness = createHarness();
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
    expect(generator.healthCheck().check().message).toContain("can't inspect 1 pod, whose status is stale");
    await clock.step(3_000);
    expect(harness.emitted()).toEqual(["Died b1"]);
    runtime.before = () => {};
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["Died b1", "Died a1"]);
    expect(generator.statuses.get("a").error).toBeUndefined();
  });

  it("emits what a reading finds that outlives the first list: the snapshot has its pod as failed", async () => {
    await using harness = createHarness();
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
  });

  it("emits PodSync when a pod can be inspected again and has not changed", async () => {
    await using harness = createHarness();
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
  });

  it("has the cache entry before its events are seen", async () => {
    await using harness = createHarness();
    const { runtime, clock, generator } = harness;
    await harness.start();
    const reader = generator.events.read({}, live);
    await reader.next();
    const seen = reader.next().then(({ value }) => [value?.kind, generator.statuses.get("a").status.ips]);
    runtime.addPod("a", ["10.1.1.1"]);
    await clock.step(1_000);
    expect(await seen).toEqual(["event", ["10.1.1.1"]]);
    await reader.return?.();
  });

  it("takes 10,000 containers that die at once", async () => {
    await using harness = createHarness();
    const { runtime, clock, generator } = harness;
    runtime.addPod("a");
    for (let at = 0; at < 10_000; at++) runtime.set("a", `a${at}`, "running");
    await harness.start();
    for (let at = 0; at < 10_000; at++) runtime.set("a", `a${at}`, "exited", "container", 9);
    await clock.step(1_000);
    expect(generator.events.last).toBe(10_000);
    expect(generator.events.get(10_000)?.exitCode).toBe(9);
  });

  it("keeps the last addresses of a finished pod", async () => {
    await using harness = createHarness();
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
  });

  it("ignores an exit that the inspection contradicts", async () => {
    await using harness = await startedWithPod();
    const { runtime, clock } = harness;
    runtime.lie = (pod) => ({ ...pod, containers: pod.containers.map((c) => ({ ...c, state: "exited" })) });
    await clock.step(3_000);
    expect(harness.emitted()).toEqual([]);
    runtime.lie = (pod) => pod;
    await clock.step(2_000);
    expect(harness.emitted()).toEqual([]);
    runtime.set("a", "a1", "exited");
    await clock.step(1_000);
    expect(harness.emitted()).toEqual(["Died a1"]);
  });

  it("takes an exit that the inspection shows and the list does not have yet: cache, records and log agree", async () => {
    await using harness = createHarness();
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
  });

  it("takes a container that is removed between list and inspection for removed, in cache, records and log", async () => {
    await using harness = await startedWithPod();
    const { runtime, clock, generator } = harness;
    runtime.set("a", "a2", "running");
    runtime.after = (call) => {
      if (call === "listPods") runtime.remove("a", "a1");
    };
    await clock.step(1_000);
    expect(harness.emitted().sort()).toEqual(["Died a1", "Removed a1", "Started a2"]);
    expect(statesIn(generator.statuses.get("a").status.containers)).toEqual({ a2: "running" });
    expect(statesIn(generator.events.snapshot()[0]!.containers)).toEqual({ a2: "running" });
  });

  it.each([
    ["with another container", (runtime: MemoryRuntime) => runtime.remove("a", "a1")],
    ["with its pod", (runtime: MemoryRuntime) => runtime.removePod("a")],
  ])("keeps the exit code of a container that is removed %s after its inspection", async (_, remove) => {
    await using harness = await startedWithPod();
    const { runtime, clock, generator } = harness;
    runtime.set("a", "sidecar", "running");
    await clock.step(1_000);
    const before = generator.events.last;
    runtime.set("a", "a1", "exited", "container", 137);
    runtime.set("a", "sidecar", "exited");
    runtime.before = (call) => (call === "podStatus" ? runtime.remove("a", "sidecar") : undefined);
    runtime.after = (call) => (call === "podStatus" ? remove(runtime) : undefined);
    await clock.step(1_000);
    expect(harness.emitted().slice(before)).toEqual(expect.arrayContaining(["Died a1", "Removed a1"]));
    expect(generator.events.get(before + 1)).toMatchObject({
      type: "ContainerDied",
      container: { id: "a1" },
      exitCode: 137,
      reason: "Error",
    });
    expect(generator.statuses.get("a").status.containers).toEqual([]);
  });

  it("does not take a container for removed that is listed and has no status", async () => {
    await using harness = await startedWithPod();
    const { runtime, clock, generator } = harness;
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
  });

  it("confirms by a second list that a running container was removed", async () => {
    await using harness = await startedWithPod();
    const { runtime, clock } = harness;
    let lies = 1;
    runtime.lie = (pod) => (lies-- > 0 ? undefined : pod);
    await clock.step(1_000);
    expect(harness.emitted()).toEqual([]);
  });

  it("inspects changed pods side by side", async () => {
    await using harness = createHarness();
    const { runtime, clock } = harness;
    await harness.start();
    for (let at = 0; at < 100; at++) runtime.addPod(`p${at}`);
    runtime.before = (call, _, signal) => (call === "podStatus" ? runtime.delay(20, signal) : undefined);
    await clock.step(1_000);
    await clock.step(200);
    expect(harness.emitted()).toHaveLength(100);
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

function statesIn(containers: readonly { id: string; state: string }[]): Record<string, string> {
  return Object.fromEntries(containers.map(({ id, state }) => [id, state]));
}

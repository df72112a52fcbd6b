import { ContainerEventType } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { FakeClock, stopped } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import { everyday, type Scenario, ScenarioPlayer, SimulatedRuntime } from "../index.ts";

const pod = { uid: "u1", name: "p1", namespace: "default" };
const never = new AbortController().signal;

describe("ScenarioPlayer", () => {
  const all: readonly Scenario[] = [
    ...everyday,
    { kind: "massRestart", everyMs: 70_000 },
    { kind: "sandboxFailure", everyMs: 30_000 },
  ];

  async function history(seed: number, minutes: number) {
    const clock = new FakeClock();
    const emitted: string[] = [];
    const runtime = new SimulatedRuntime({
      clock,
      onEvent: ({ id, type, pod: { name } }) => emitted.push(`${type} ${name} ${id.slice(0, 8)}`),
    });
    const player = new ScenarioPlayer({ runtime, scenarios: all, clock, seed });
    const controller = new AbortController();
    const running = player.run(controller.signal);
    for (let step = 0; step < minutes * 60; step++) await clock.step(1_000);
    controller.abort(stopped("enough"));
    await running;
    return { emitted, runtime, player };
  }

  it("plays the same history from the same seed, another from another", async () => {
    const first = await history(7, 3);
    expect((await history(7, 3)).emitted).toEqual(first.emitted);
    expect((await history(8, 3)).emitted).not.toEqual(first.emitted);
    expect(first.emitted.length).toBeGreaterThan(100);
  });

  it("leaves as many pods as are deployed, and nothing that piles up", async () => {
    const { runtime } = await history(1, 10);
    const pods = new Set([...runtime.sandboxes.values()].map(({ pod: { uid } }) => uid));
    expect(pods.size).toBeGreaterThanOrEqual(11);
    expect(pods.size).toBeLessThan(16);
    expect(runtime.containers.size).toBeLessThan(30);
  });

  it("goes at the configured pace", async () => {
    const seen = async (pace: number) => {
      const clock = new FakeClock();
      let emitted = 0;
      const runtime = new SimulatedRuntime({ clock, onEvent: () => emitted++ });
      const controller = new AbortController();
      const running = new ScenarioPlayer({ runtime, scenarios: all, clock, pace }).run(controller.signal);
      for (let step = 0; step < 120; step++) await clock.step(1_000 / pace);
      controller.abort(stopped("enough"));
      await running;
      expect(clock.timers).toBe(0);
      return emitted;
    };
    expect(await seen(10)).toBe(await seen(1));
  });

  it("starts a container that crashes after delays that double, and at once after a long run", async () => {
    const starts = async (runsMs: number) => {
      const clock = new FakeClock(0);
      const at: number[] = [];
      const runtime = new SimulatedRuntime({
        clock,
        onEvent: ({ id, type }) => {
          if (type === ContainerEventType.CONTAINER_STARTED_EVENT && runtime.containers.has(id))
            at.push(clock.now());
        },
      });
      const controller = new AbortController();
      const common = { namespace: "default", name: "importer", container: "importer", exitCode: 1 };
      const running = new ScenarioPlayer({
        runtime,
        clock,
        scenarios: [{ kind: "crashLoop", ...common, runsMs, firstDelayMs: 10, maxDelayMs: 35 }],
      }).run(controller.signal);
      await clock.step(400);
      controller.abort(stopped("enough"));
      await running;
      return at.slice(1, 5).map((time, index) => time - at[index]! - runsMs);
    };
    expect(await starts(5)).toEqual([10, 20, 35, 35]);
    expect(await starts(71)).toEqual([10, 10, 10, 10]);
  });

  it("plays on when its pods are removed by another caller", async () => {
    const clock = new FakeClock();
    const runtime = new SimulatedRuntime({ clock });
    const controller = new AbortController();
    const running = new ScenarioPlayer({ runtime, scenarios: all, clock }).run(controller.signal);
    for (let minute = 0; minute < 5; minute++) {
      await clock.step(61_000);
      for (const id of [...runtime.sandboxes.keys()]) runtime.removeSandbox(id);
    }
    await clock.step(61_000);
    expect(runtime.sandboxes.size).toBeGreaterThan(0);
    controller.abort(stopped("enough"));
    await running;
  });

  it("ends the other scenarios when one fails, with its error", async () => {
    const clock = new FakeClock();
    const runtime = new SimulatedRuntime({ clock });
    const running = new ScenarioPlayer({ runtime, scenarios: all, clock }).run(never);
    const failure = running.catch((error: Error) => error.message);
    await clock.step(1_000);
    runtime.runSandbox = () => {
      throw new Error("no more addresses");
    };
    await clock.step(120_000);
    expect(await failure).toBe("no more addresses");
    expect(clock.timers).toBe(0);
  });

  it("removes a pod of which a container exits by itself, and gives the shortest grace period", async () => {
    const clock = new FakeClock();
    const runtime = new SimulatedRuntime({ clock });
    const player = new ScenarioPlayer({ runtime, scenarios: [], clock });
    const containers = ["a", "b"].map((name) => ({ name, stopAfterMs: 600_000 }));
    player.admit({ ...pod, containers });
    const removing = player.removePod("u1", { gracePeriodSeconds: 30 });
    runtime.removeContainer([...runtime.containers.keys()][0]!);
    await clock.step(29_999);
    expect(runtime.sandboxes.size).toBe(1);
    await clock.step(1);
    await removing;
    expect(runtime.sandboxes.size).toBe(0);

    player.admit({ ...pod, containers });
    const slow = player.removePod("u1", { gracePeriodSeconds: 30 });
    await player.removePod("u1", { gracePeriodSeconds: 0 });
    expect(runtime.sandboxes.size).toBe(0);
    await clock.step(30_000);
    await slow;
  });

  it("runs pods from outside until they are removed", async () => {
    const { runtime, player } = await history(1, 0);
    player.admit({ ...pod, containers: [{ name: "app" }, { name: "side" }] });
    player.admit({ ...pod, containers: [{ name: "app" }] });
    const [sandbox] = runtime.sandboxesOf("u1");
    expect(runtime.containersOf(sandbox!.id)).toHaveLength(2);
    await player.removePod("u1", { gracePeriodSeconds: 0 });
    expect(runtime.sandboxesOf("u1")).toEqual([]);
  });
});

import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { defaultDeviceSettings } from "../../assembly/testing/defaults.ts";
import type { DeviceTaint } from "../model/model.ts";
import { taintingAfter } from "../testing/device-cluster.ts";
import { Drivers } from "./drivers.ts";
import { createDeviceMetrics } from "./metrics.ts";

const name = "gpu.example.com";
const hot: DeviceTaint = { key: "example.com/hot", effect: "NoSchedule" };

function setUp(taintDelay: number, untilReady?: () => Promise<void>) {
  const clock = new FakeClock();
  const metrics = createDeviceMetrics(new Registry(), () => []);
  const settings = { ...defaultDeviceSettings, ...taintingAfter(taintDelay), wipeDelay: 60_000 };
  let heard: (problem: string | undefined) => void = () => {};
  const drivers = new Drivers({
    nodeName: "worker-1",
    settings: () => settings,
    queue: { add: () => {} },
    heartbeat: async ({ onChange }) => {
      heard = onChange;
      onChange(undefined);
    },
    metrics,
    clock,
    log: silentLogger,
  });
  let generation = 0;
  const registration = (at: number) => ({
    type: "DRAPlugin" as const,
    name,
    versions: ["nodekeeper.devices.v1alpha2"],
    endpoint: "/nonexistent/driver.sock",
    registrationSocket: "/nonexistent/registration.sock",
    uid: 0,
    generation: at,
  });
  return {
    clock,
    drivers,
    connect: () =>
      drivers.register(
        registration(++generation),
        undefined,
        untilReady && { needsNoPreparation: false, untilReady },
      ),
    disconnect: () => drivers.deregister(registration(generation), "socket removed"),
    answers: (problem?: string) => heard(problem),
    taintDevices: (taints: DeviceTaint[]) => {
      const byDevice = new Map(taints.map((taint) => ["main/a", [taint]]));
      drivers.setTaints(name, { byDevice, isStuck: false });
    },
    isTainted: () => drivers.get(name)!.isMissing,
    isWithdrawn: () => drivers.get(name)!.isWithdrawn,
    reload: (changed: Partial<typeof settings>) => {
      Object.assign(settings, changed);
      drivers.settingsChanged();
    },
  };
}

it("a driver that is disconnected for longer than the delay is tainted until it is back", async () => {
  const { clock, drivers, connect, disconnect, isTainted } = setUp(5_000);
  await connect();
  disconnect();
  await clock.step(4_999);
  expect(isTainted()).toBe(false);
  await clock.step(1);
  expect(isTainted()).toBe(true);
  await connect();
  expect(isTainted()).toBe(false);
  await drivers.stop();
});

it.each([
  { change: "raised", taintDelay: 10_000, wipeDelay: 120_000, taintedAt: 10_000, withdrawnAt: 120_000 },
  { change: "lowered", taintDelay: 3_000, wipeDelay: 30_000, taintedAt: 3_000, withdrawnAt: 30_000 },
  // The taint is overdue at the reload, 2 s after the disconnection.
  { change: "lowered to less", taintDelay: 1_000, wipeDelay: 2_500, taintedAt: 2_000, withdrawnAt: 2_500 },
])("delays that are $change by a reload apply from the disconnection", async (delays) => {
  const { taintDelay, wipeDelay, taintedAt, withdrawnAt } = delays;
  const { clock, drivers, connect, disconnect, isTainted, isWithdrawn, reload } = setUp(5_000);
  await connect();
  disconnect();
  await clock.step(2_000);
  reload({ taintDelay, wipeDelay });
  const atOf: { tainted?: number; withdrawn?: number } = {};
  for (let at = 2_000; at <= 130_000; at += 500) {
    await clock.step(at === 2_000 ? 0 : 500);
    if (isTainted()) atOf.tainted ??= at;
    if (isWithdrawn()) atOf.withdrawn ??= at;
  }
  expect(atOf).toEqual({ tainted: taintedAt, withdrawn: withdrawnAt });
  await drivers.stop();
});

it("one that is back in time is not, though the taints of its devices change meanwhile", async () => {
  const { clock, drivers, connect, disconnect, taintDevices, isTainted } = setUp(5_000);
  await connect();
  taintDevices([hot]);
  disconnect();
  taintDevices([]);
  await clock.step(2_000);
  await connect();
  taintDevices([hot]);
  await clock.step(10_000);
  expect(isTainted()).toBe(false);
  await drivers.stop();
});

it("one that is back keeps its slices and its taint while pods can't be bound to it yet", async () => {
  let ready = Promise.resolve();
  const { clock, drivers, connect, disconnect, isTainted } = setUp(5_000, () => ready);
  await connect();
  disconnect();
  await clock.step(59_000);
  const gate = Promise.withResolvers<void>();
  ready = gate.promise;
  await connect();
  await clock.step(60_000);
  expect(drivers.get(name)?.isWithdrawn).toBe(false);
  expect(isTainted()).toBe(true);
  gate.resolve();
  await clock.step(0);
  expect(isTainted()).toBe(false);
  await drivers.stop();
});

it("one that does not answer is tainted after the delay until it answers, and its disconnection does not start it again", async () => {
  const { clock, drivers, connect, disconnect, answers, isTainted } = setUp(5_000);
  await connect();
  answers("it hangs");
  await clock.step(4_999);
  expect(isTainted()).toBe(false);
  await clock.step(1);
  expect(isTainted()).toBe(true);
  answers();
  expect(isTainted()).toBe(false);
  answers("it hangs");
  await clock.step(3_000);
  answers();
  await clock.step(3_000);
  expect(isTainted()).toBe(false);
  answers("no process listens");
  await clock.step(4_000);
  disconnect();
  await clock.step(1_000);
  expect(isTainted()).toBe(true);
  await drivers.stop();
});

it("one that answers again is tainted while pods can't be bound to it yet", async () => {
  const gate = Promise.withResolvers<void>();
  const { clock, drivers, connect, answers, isTainted } = setUp(5_000, () => gate.promise);
  drivers.adopt(name, []);
  await connect();
  answers("it hangs");
  answers();
  expect(isTainted()).toBe(true);
  gate.resolve();
  await clock.step(0);
  expect(isTainted()).toBe(false);
  await drivers.stop();
});

it("one that did not register is tainted until the startup is over, and not known any more then", async () => {
  const { drivers } = setUp(5_000);
  drivers.adopt(name, []);
  expect(drivers.get(name)?.isMissing).toBe(true);
  expect(drivers.get(name)?.isWithdrawn).toBe(false);
  drivers.startupOver();
  expect(drivers.get(name)?.isWithdrawn).toBe(true);
  expect(drivers.withdrawn(name)).toBe(true);
  // What was read of the API server before comes too late.
  drivers.adopt(name, []);
  expect(drivers.get(name)).toBeUndefined();
  await drivers.stop();
});

it("none is tainted where the agent prepares no claims", async () => {
  const { clock, drivers, connect, disconnect, isTainted } = setUp(Number.POSITIVE_INFINITY);
  await connect();
  disconnect();
  await clock.step(50_000);
  expect(isTainted()).toBe(false);
  await drivers.stop();
});

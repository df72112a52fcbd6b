import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DRAResourceHealthDefinition } from "@nodekeeper/core/gen/drahealth/v1/api.ts";
import { DeviceHealthReportDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { type Clock, childScope, FakeClock, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createClient } from "nice-grpc";
import { expect, it } from "vitest";
import { defaultDeviceSettings } from "../assembly/testing/defaults.ts";
import type { DriverReturn } from "./driver-return.ts";
import { DriverStates } from "./driver-state.ts";
import { KubeletCalls } from "./kubelet-calls.ts";
import { KubeletPlugins } from "./kubelet-plugins.ts";
import type { ClaimMetrics } from "./metrics.ts";
import type { Preparation } from "./preparation.ts";
import { ClaimWorld, DRIVER, NODE } from "./testing/claim-world.ts";

function setUp(
  world: ClaimWorld,
  {
    wipeDelay = 60_000,
    clock = systemClock,
    keepAgainIn = () => {},
  }: { wipeDelay?: number; clock?: Clock; keepAgainIn?: (driver: string, ms: number) => void } = {},
) {
  const registryDirectory = join(world.directory, "reg");
  const stop = childScope();
  const kubeletPlugin = { ...defaultDeviceSettings.kubeletPlugin, registryDirectory };
  const settings = () => ({ ...defaultDeviceSettings, wipeDelay, settleTime: 60_000, kubeletPlugin });
  const common = { clock, log: silentLogger };
  const records = world.records();
  const drivers = new DriverStates({
    ...common,
    nodeName: NODE,
    settings,
    devices: { setTaints: () => {} },
    statuses: { reported: () => {}, withdrawn: () => {}, forgotten: () => {} },
    problems: { report: () => {}, forgotten: () => {} },
    records,
  });
  const preparation = {} as Preparation;
  const driverReturn = {} as DriverReturn;
  const metrics = {} as ClaimMetrics;
  const queue = { add: () => {}, addAfter: keepAgainIn };
  const context = { ...common, settings, drivers, records, queue, stop: stop.signal };
  const calls = new KubeletCalls({ ...context, preparation, driverReturn, metrics });
  const plugins = new KubeletPlugins({ ...context, calls });
  let generation = 0;
  const register = (...more: string[]) => {
    drivers.connect(
      {
        type: "DRAPlugin",
        name: DRIVER,
        versions: ["nodekeeper.devices.v1alpha2", ...more],
        endpoint: join(world.directory, "driver.sock"),
        registrationSocket: join(world.directory, "driver-reg.sock"),
        uid: 0,
        generation: ++generation,
      },
      stop.signal,
    );
    return drivers.of(DRIVER);
  };
  const sockets = () => readdirSync(registryDirectory).filter((name) => !name.startsWith("."));
  /** The inodes of the sockets that the kubelet finds. */
  const inodes = () => sockets().map((name) => statSync(join(registryDirectory, name)).ino);
  /** Registers the driver, and waits until the kubelet finds its plugin. */
  const serve = async (...more: string[]) => {
    const state = register(...more);
    drivers.reconciled(state.name, state.connection, undefined);
    await plugins.keep(state);
    await until("the socket is there", () => state.plugin && inodes().length === 1);
    return state;
  };
  return {
    plugins,
    drivers,
    records,
    register,
    serve,
    inodes,
    socket: () => join(registryDirectory, sockets()[0]!),
    end: async () => {
      stop.abort();
      await drivers.stop();
    },
  };
}

it("a driver that registers again before it was reconciled keeps its plugin", async () => {
  using world = new ClaimWorld();
  const { serve, plugins, drivers, register, inodes, end } = setUp(world);
  const state = await serve();
  const [before] = inodes();
  // What was under way for the first registration ends when the second one is there.
  register();
  await plugins.keep(state);
  expect(state.plugin).toBeDefined();
  drivers.reconciled(state.name, state.connection, undefined);
  await plugins.keep(state);
  expect(inodes()).toEqual([before]);
  await end();
});

it("the plugin of a driver with claims does not wait for the driver, unless a claim is lost", async () => {
  using world = new ClaimWorld();
  const { plugins, records, register, end } = setUp(world);
  const state = register();
  await plugins.keep(state);
  expect(state.plugin).toBeUndefined();
  const claim = world.claim("claim", "gpu-0");
  await records.save(DRIVER, claim, { state: "prepared", devices: [], pods: [], cdi: "" });
  await records.lose(DRIVER, claim.uid);
  await plugins.keep(state);
  expect(state.plugin).toBeUndefined();
  await records.save(DRIVER, claim, { state: "prepared", devices: [], pods: [], cdi: "" });
  await plugins.keep(state);
  expect(state.plugin).toBeDefined();
  await end();
});

it("a driver that registers while its plugin ends gets another one", async () => {
  using world = new ClaimWorld();
  const { serve, plugins, drivers, register, inodes, end } = setUp(world);
  const state = await serve();
  register("v1.DRAPlugin");
  const ending = plugins.keep(state);
  register();
  drivers.reconciled(state.name, state.connection, undefined);
  await ending;
  expect(state.plugin).toBeDefined();
  await until("a socket is there again", () => inodes().length === 1);
  await end();
});

it("the kubelet's stream of health ends when the driver registers without health, whatever it does next", async () => {
  using world = new ClaimWorld();
  const { serve, plugins, register, socket, end } = setUp(world);
  const health = DeviceHealthReportDefinition.fullName;
  const state = await serve(health);
  const channel = dialUnix(socket(), { maxReceiveBytes: 1 << 20 });
  const client = createClient(DRAResourceHealthDefinition, channel);
  let answers = 0;
  const watching = (async () => {
    for await (const _ of client.nodeWatchResources({})) answers++;
  })();
  await until("the kubelet hears of it", () => answers > 0);
  // The same plugin serves the kubelet on: the second registration is not reconciled yet.
  register();
  register(health);
  await plugins.keep(state);
  await watching;
  channel.close();
  await end();
});

it("a disconnected driver stays registered for claims that the kubelet has yet to unprepare, and for no others", async () => {
  using world = new ClaimWorld();
  const { plugins, drivers, records, register, end } = setUp(world, { wipeDelay: 0 });
  const state = register();
  drivers.reconciled(state.name, state.connection, undefined);
  await plugins.keep(state);
  const claim = world.claim("claim", "gpu-0");
  for (const ending of ["prepared", "unpreparing"] as const) {
    await records.save(DRIVER, claim, { state: ending, devices: [], pods: [], cdi: "" });
    drivers.disconnect(DRIVER, "socket removed");
    await plugins.keep(state);
    expect(state.plugin).toBeDefined();
  }
  await records.save(DRIVER, claim, { state: "unprepared", devices: [], pods: [], cdi: "" });
  await plugins.keep(state);
  expect(state.plugin).toBeUndefined();
  await end();
});

it.each([10, 11, 12, 13])(
  "a disconnected driver is looked at again until it is not registered any more, after %d ms, with whatever time passes between two looks at the clock",
  async (wipeDelay) => {
    using world = new ClaimWorld();
    const fake = new FakeClock();
    let crept = 0;
    const clock: Clock = {
      now: () => fake.now(),
      monotonic: () => fake.monotonic() + ++crept,
      after: (ms, callback) => fake.after(ms, callback),
      sleep: (ms, signal) => fake.sleep(ms, signal),
    };
    let waits = 0;
    const { plugins, drivers, register, end } = setUp(world, {
      wipeDelay,
      clock,
      keepAgainIn: () => waits++,
    });
    const state = register();
    drivers.reconciled(state.name, state.connection, undefined);
    await plugins.keep(state);
    drivers.disconnect(DRIVER, "socket removed");
    for (let looks = 1; state.plugin; looks++) {
      await plugins.keep(state);
      if (state.plugin) expect(waits).toBe(looks);
    }
    expect(drivers.get(DRIVER)).toBeUndefined();
    await end();
  },
);

it("claims of an earlier boot are looked at again when the time for their driver to come back is over, however often before", async () => {
  using world = new ClaimWorld();
  const claim = world.claim("claim", "gpu-0");
  await world.records("boot-0").save(DRIVER, claim, { state: "prepared", devices: [], pods: [], cdi: "" });
  const clock = new FakeClock();
  const waits: number[] = [];
  const { plugins, drivers, end } = setUp(world, { clock, keepAgainIn: (_, ms) => waits.push(ms) });
  const state = drivers.of(DRIVER);
  await plugins.keep(state);
  await clock.step(1_000);
  // As after a comparison that failed, whose repetition took the place of the later look.
  await plugins.keep(state);
  expect(waits).toEqual([60_000, 59_000]);
  expect(state.plugin).toBeUndefined();
  await clock.step(59_000);
  await plugins.keep(state);
  expect(state.plugin).toBeDefined();
  await end();
});

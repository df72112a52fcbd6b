import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { childScope, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { DriverStates } from "./driver-state.ts";
import { KubeletPlugins } from "./kubelet-plugins.ts";
import { ClaimWorld, DRIVER, NODE } from "./testing/claim-world.ts";

function setUp(world: ClaimWorld) {
  const registryDirectory = join(world.folder, "reg");
  const stop = childScope();
  const common = { clock: systemClock, log: silentLogger };
  const drivers = new DriverStates({
    ...common,
    nodeName: NODE,
    callTimeoutMs: () => 60_000,
    onTaints: () => {},
  });
  const plugins = new KubeletPlugins({
    ...common,
    drivers,
    records: world.records(),
    registryDirectory,
    settings: () => ({ wipeDelayMs: 60_000, settleTimeMs: 60_000 }),
    stop: stop.signal,
    keepAgainIn: () => {},
    prepare: async () => [],
    unprepare: async () => {},
  });
  let generation = 0;
  const register = (...more: string[]) => {
    drivers.connect(
      {
        type: "DRAPlugin",
        name: DRIVER,
        versions: ["nodekeeper.devices.v1alpha1", ...more],
        endpoint: join(world.folder, "driver.sock"),
        registrationSocket: join(world.folder, "driver-reg.sock"),
        generation: ++generation,
      },
      stop.signal,
    );
    return drivers.of(DRIVER);
  };
  const sockets = () => readdirSync(registryDirectory).filter((name) => !name.startsWith("."));
  return {
    plugins,
    register,
    /** The inodes of the sockets that the kubelet finds. */
    inodes: () => sockets().map((name) => statSync(join(registryDirectory, name)).ino),
    end: async () => {
      stop.abort();
      await drivers.stop();
    },
  };
}

it("a driver that registers again before it was reconciled keeps its plugin", async () => {
  using world = new ClaimWorld();
  const { plugins, register, inodes, end } = setUp(world);
  const state = register();
  state.connection!.isReconciled = true;
  await plugins.keep(state);
  await until("the socket is there", () => state.plugin && inodes().length === 1);
  const [before] = inodes();
  // What was under way for the first registration ends when the second one is there.
  register();
  await plugins.keep(state);
  expect(state.plugin).toBeDefined();
  state.connection!.isReconciled = true;
  await plugins.keep(state);
  expect(inodes()).toEqual([before]);
  await end();
});

it("a driver that registers while its plugin ends gets another one", async () => {
  using world = new ClaimWorld();
  const { plugins, register, inodes, end } = setUp(world);
  const state = register();
  state.connection!.isReconciled = true;
  await plugins.keep(state);
  await until("the socket is there", () => state.plugin && inodes().length === 1);
  register("v1.DRAPlugin");
  const ending = plugins.keep(state);
  register();
  state.connection!.isReconciled = true;
  await ending;
  expect(state.plugin).toBeDefined();
  await until("a socket is there again", () => inodes().length === 1);
  await end();
});

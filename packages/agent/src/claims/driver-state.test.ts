import { join } from "node:path";
import { DeviceHealthReportDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { defaultDeviceSettings } from "../assembly/testing/defaults.ts";
import { DriverStates } from "./driver-state.ts";
import { ClaimWorld, DRIVER, NODE } from "./testing/claim-world.ts";

/** A driver that is connected, behind a socket on which no process listens. */
function connected(world: ClaimWorld, ...versions: string[]) {
  const clock = new FakeClock();
  const states = new DriverStates({
    nodeName: NODE,
    settings: () => defaultDeviceSettings,
    devices: { setTaints: () => {} },
    statuses: { reported: () => {}, withdrawn: () => {}, forgotten: () => {} },
    problems: { report: () => {}, forgotten: () => {} },
    records: world.records(),
    clock,
    log: silentLogger,
  });
  const socket = join(world.directory, "driver.sock");
  states.connect(
    {
      type: "DRAPlugin",
      name: DRIVER,
      endpoint: socket,
      registrationSocket: socket,
      uid: 0,
      versions: ["nodekeeper.devices.v1alpha2", ...versions],
      generation: 1,
    },
    new AbortController().signal,
  );
  return { clock, states };
}

it.each([
  ["that the kubelet does not register", [], 5_000],
  ["that has not reported the health of its devices", [DeviceHealthReportDefinition.fullName], 10_000],
] as const)("pods wait for a driver %s, but not forever", async (_, versions, boundMs) => {
  using world = new ClaimWorld();
  const { clock, states } = connected(world, ...versions);
  let isReady = false;
  const waiting = states.untilReady(DRIVER, new AbortController().signal).then(() => {
    isReady = true;
  });
  await clock.step(boundMs - 1);
  expect(isReady).toBe(false);
  await clock.step(1);
  await waiting;
  await states.stop();
});

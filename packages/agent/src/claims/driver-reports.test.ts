import { join } from "node:path";
import {
  DeviceBindingDefinition,
  DeviceStatusReportDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { childScope, FakeClock, silentLogger, untilAborted } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createServer } from "nice-grpc";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { DeviceSettings } from "../devices/index.ts";
import { DriverReports } from "./driver-reports.ts";
import { ClaimWorld, DRIVER, NODE } from "./testing/claim-world.ts";

let world: ClaimWorld;
let server: ReturnType<typeof createServer>;
let endpoint: string;
/** Streams that the driver was asked for; each sends its number as the device. */
let streams: number;
const scopes: { abort: () => void }[] = [];
const ends: Promise<void>[] = [];

beforeEach(async () => {
  world = new ClaimWorld();
  streams = 0;
  endpoint = join(world.directory, "driver.sock");
  server = createServer();
  server.add(DeviceStatusReportDefinition, {
    async *watchDeviceStatus(_request, { signal }) {
      yield { devices: [{ claimUid: "uid", device: `of-stream-${++streams}` }] };
      await untilAborted(signal);
    },
  });
  await server.listen(`unix:${endpoint}`);
});
afterEach(async () => {
  for (const scope of scopes.splice(0)) scope.abort();
  await Promise.all(ends.splice(0));
  server.forceShutdown();
  world[Symbol.dispose]();
});

function follow() {
  const clock = new FakeClock();
  const reported: string[] = [];
  const scope = childScope();
  scopes.push(scope);
  const tell = Promise.withResolvers<(isNew: boolean) => void>();
  const reports = new DriverReports({
    nodeName: NODE,
    settings: () => ({ kubeletPlugin: { deviceStatus: true } }) as DeviceSettings,
    statuses: {
      reported: (_driver, devices) => reported.push(...devices.map(({ device }) => device)),
      withdrawn: () => {},
      forgotten: () => {},
    },
    allocations: {
      tell: async (_target, onTold, signal) => {
        tell.resolve(onTold);
        await untilAborted(signal);
      },
      forgotten: () => {},
    },
    problems: { report: () => {} },
    clock,
    log: silentLogger,
  });
  const versions = [DeviceStatusReportDefinition, DeviceBindingDefinition].map(({ fullName }) => fullName);
  const served = { endpoint, versions, client: undefined };
  const { statusReport } = reports.follow({ name: DRIVER, setReasons: () => {} }, served, scope.signal);
  ends.push(reports.ended());
  return { clock, reported, told: tell.promise, statusReport };
}

it("a driver is asked for the status once it was told of allocations, and again after each that is new", async () => {
  const { reported, told, statusReport } = follow();
  const onTold = await told;
  expect(streams).toBe(0);
  onTold(true);
  await until("reported", () => reported.length === 1);
  onTold(false);
  onTold(true);
  await until("reported again", () => reported.length === 2);
  expect(reported).toEqual(["of-stream-1", "of-stream-2"]);
  expect(statusReport?.problem).toBeUndefined();
});

it("a driver that can't be told of allocations is asked for the status after 10 s", async () => {
  const { clock, reported, told } = follow();
  await told;
  await clock.step(9_000);
  expect(streams).toBe(0);
  await clock.step(1_000);
  await until("reported", () => reported.length === 1);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DeviceDriverDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  DevicePreparationDefinition,
  DeviceStatusReportDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { createLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createClient } from "nice-grpc";
import { expect, it } from "vitest";
import { inEachContract } from "./device-services.ts";
import { type DeviceDriverOptions, serveDeviceDriver } from "./index.ts";

it("names a pool that has no devices, because a device was yielded in its place", async () => {
  const socketDir = mkdtempSync(join(tmpdir(), "nks-"));
  const lines: { err?: string; msg?: string }[] = [];
  const log = createLogger("error", { write: (line) => lines.push(JSON.parse(line)) });
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir,
    log,
    async *devices() {
      yield [{ name: "gpu-0" }];
    },
  });
  const line = await until("an error", () => lines.find(({ msg }) => msg?.startsWith("report failed")));
  expect(line.err).toMatch(
    /pool "gpu-0" has no devices: yield pools with their devices, such as \[\{ devices:/,
  );
  await driver.stop();
  rmSync(socketDir, { recursive: true });
});

it.each<[string, Partial<DeviceDriverOptions>, string]>([
  [
    "a device",
    {
      async *devices() {
        yield [{ devices: [{ name: "gpu-0", attributes: { lanes: { int: 1.5 as never } } }] }];
      },
    },
    "1.5",
  ],
  [
    "the data of a status",
    {
      async *status() {
        yield [{ claimUid: "c", device: "gpu-0", data: { bytes: 12n } }];
      },
    },
    "BigInt",
  ],
  [
    "the generation of a condition",
    {
      async *status() {
        const condition = { type: "Ready", status: "True", reason: "Up", observedGeneration: 1.5 } as const;
        yield [{ claimUid: "c", device: "gpu-0", conditions: [condition] }];
      },
    },
    "1.5",
  ],
])("logs that %s can't be encoded, and the agent gets the error", async (_, reports, message) => {
  const socketDir = mkdtempSync(join(tmpdir(), "nks-"));
  const lines: { err?: string; msg?: string }[] = [];
  const log = createLogger("error", { write: (line) => lines.push(JSON.parse(line)) });
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir,
    log,
    async *devices() {},
    prepare: () => [],
    unprepare: () => {},
    ...reports,
  });
  await driver.ready;
  const channel = dialUnix(driver.socketPath, { maxReceiveBytes: 1 << 20 });
  const stream = reports.status
    ? createClient(DeviceStatusReportDefinition, channel).watchDeviceStatus({})
    : createClient(DeviceDriverDefinition, channel).listAndWatchDevices({});
  await expect(stream[Symbol.asyncIterator]().next()).rejects.toThrow(message);
  const line = await until("an error", () => lines.find(({ msg }) => msg?.startsWith("report failed")));
  expect(line.err).toContain(message);
  channel.close();
  await driver.stop();
  rmSync(socketDir, { recursive: true });
});

it("an older agent gets an error for edits that it would ignore", async () => {
  const socketDir = mkdtempSync(join(tmpdir(), "nks-"));
  const driver = serveDeviceDriver({
    name: "nic.example.com",
    socketDir,
    async *devices() {},
    prepare: () => [
      { request: "r", pool: "p", device: "nic-0", edits: { netDevices: [{ hostInterfaceName: "eth1" }] } },
    ],
    unprepare: () => {},
  });
  await driver.ready;
  const channel = dialUnix(driver.socketPath, { maxReceiveBytes: 1 << 20 });
  const [older, newer] = inEachContract(DevicePreparationDefinition).map((definition) =>
    createClient(definition as typeof DevicePreparationDefinition, channel),
  );
  await expect(older!.prepareDevices({})).rejects.toThrow(
    "has netDevices, which this Nodekeeper agent does not know",
  );
  expect((await newer!.prepareDevices({})).devices).toHaveLength(1);
  channel.close();
  await driver.stop();
  rmSync(socketDir, { recursive: true });
});

it("status needs prepare and unprepare", () => {
  const driver = () =>
    serveDeviceDriver({
      name: "gpu.example.com",
      socketDir: tmpdir(),
      async *devices() {},
      async *status() {},
    });
  expect(driver).toThrow("status needs prepare and unprepare");
});

it("onAllocations needs status", () => {
  const driver = () =>
    serveDeviceDriver({
      name: "gpu.example.com",
      socketDir: tmpdir(),
      async *devices() {},
      onAllocations: () => {},
    });
  expect(driver).toThrow("onAllocations needs status");
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DevicePreparationDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { dialUnix } from "@nodekeeper/core/grpc";
import { createLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createClient } from "nice-grpc";
import { expect, it } from "vitest";
import { inEachContract } from "./device-services.ts";
import { serveDeviceDriver } from "./index.ts";

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

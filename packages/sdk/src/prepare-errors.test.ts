import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PrepareDevicesRequest } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { UnaryChannel } from "@nodekeeper/core/grpc";
import { createLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { serveDeviceDriver } from "./index.ts";

it.each([
  ["is larger than a header may be", `the bus is gone ${"x".repeat(200_000)}`],
  ["ends in half of a character", "the bus is gone \ud83d"],
])("an error of prepare whose message %s reaches the agent", async (_, message) => {
  const socketDir = mkdtempSync(join(tmpdir(), "nks-"));
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir,
    log: createLogger("silent"),
    async *devices() {
      yield [];
    },
    prepare() {
      throw new Error(message);
    },
    unprepare() {},
  });
  await driver.ready;
  const channel = new UnaryChannel(driver.socketPath, { maxReceiveBytes: 10_000 });
  const request = PrepareDevicesRequest.encode(PrepareDevicesRequest.fromPartial({})).finish();
  const method = "nodekeeper.devices.v1alpha2.DevicePreparation/PrepareDevices";
  const called = channel.call(method, [request], new AbortController().signal);
  await expect(called).rejects.toThrow(/^the bus is gone (x{484}|\ufffd)$/);
  channel.close();
  await driver.stop();
  rmSync(socketDir, { recursive: true });
});

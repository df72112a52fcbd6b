import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
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

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { FakeClock, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createServer } from "nice-grpc";
import { expect, it } from "vitest";
import { OwnPlugins } from "./own-plugins.ts";

const never = new AbortController().signal;

it.each([true, false])(
  "a driver that registers with its own plugin while it is looked for stays left alone: %s",
  async (registers) => {
    const found: boolean[] = [];
    const plugins = new OwnPlugins({
      records: { of: () => [{ uid: "1" }] },
      drivers: { foundAlone: (_driver: string, isAlone: boolean) => void found.push(isAlone) },
      settings: () => ({ kubeletPlugin: { registryDirectory: "/nonexistent" } }),
      clock: new FakeClock(),
      log: silentLogger,
    } as never);
    const state = { name: "gpu.example.com", isLeftAlone: false, isFoundAlone: false };
    const looking = plugins.look(state as never, never);
    state.isLeftAlone = registers;
    await looking;
    expect(found).toEqual(registers ? [] : [false]);
  },
);

// The agent's own plugin is served at a hidden name first, and answers there.
it.each([
  ["own.sock", true],
  [".123-0a1b2c3d.sock", false],
])("a plugin at %s in the kubelet's directory is the driver's own: %s", async (name, isOwn) => {
  const registryDirectory = mkdtempSync(join(tmpdir(), "nkop-"));
  const server = createServer();
  server.add(RegistrationDefinition, {
    getInfo: async () => ({
      type: "DRAPlugin",
      name: "gpu.example.com",
      endpoint: "",
      supportedVersions: [],
    }),
    notifyRegistrationStatus: async () => ({}),
  });
  await server.listen(`unix:${join(registryDirectory, name)}`);
  try {
    const found: boolean[] = [];
    const plugins = new OwnPlugins({
      records: { of: () => [{ uid: "1" }] },
      drivers: { foundAlone: (_driver: string, isAlone: boolean) => void found.push(isAlone) },
      settings: () => ({ kubeletPlugin: { registryDirectory } }),
      clock: systemClock,
      log: silentLogger,
    } as never);
    const state = { name: "gpu.example.com", isLeftAlone: false, isFoundAlone: false };
    await plugins.look(state as never, never);
    expect(found).toEqual([isOwn]);
  } finally {
    server.forceShutdown();
    rmSync(registryDirectory, { recursive: true });
  }
});

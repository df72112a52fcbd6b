import { rmSync } from "node:fs";
import { join } from "node:path";
import { Channel, credentials } from "@grpc/grpc-js";
import { createClient } from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ReporterPluginDefinition } from "../src/gen/reporterplugin/v1alpha1/api.ts";
import { type RunningManager, startManager, temporaryFolder, until } from "../src/plugins/test-support.ts";
import {
  customNodeResource,
  metadata,
  node,
  type ReporterPlugin,
  serveReporterPlugin,
  status,
} from "./index.ts";

let folder: ReturnType<typeof temporaryFolder>;
const plugins: ReporterPlugin[] = [];
const agents: RunningManager[] = [];

function serve(options: Partial<Parameters<typeof serveReporterPlugin>[0]> = {}): ReporterPlugin {
  const plugin = serveReporterPlugin({
    name: "sample",
    socketDir: folder.path,
    checkIntervalMs: 100,
    report: async function* () {
      yield [node(metadata("labels", { sample: "yes" }))];
    },
    ...options,
  });
  plugins.push(plugin);
  return plugin;
}

function agent(): RunningManager {
  const started = startManager(folder.path);
  agents.push(started);
  return started;
}

beforeEach(() => {
  folder = temporaryFolder();
});

afterEach(async () => {
  await Promise.all([...plugins.splice(0).map((p) => p.stop()), ...agents.splice(0).map((a) => a.stop())]);
  folder.remove();
});

describe("serveReporterPlugin", () => {
  it("is registered by the agent over a real socket and is told so", async () => {
    const { handler, at } = agent();
    let registered = 0;
    const plugin = serve({ onRegistered: () => registered++ });
    await plugin.ready;
    await until("registered", () => registered === 1 && at(plugin.socketPath)?.state === "registered");
    expect(handler.calls).toEqual(["register sample 1"]);
    expect(plugin.registration).toEqual({ state: "registered" });
    await plugin.stop();
    await until("deregistered", () => handler.calls.length === 2);
    expect(handler.calls[1]).toBe("deregister sample 1: its socket was removed");
  });
});

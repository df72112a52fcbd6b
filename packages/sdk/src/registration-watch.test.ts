import { rmSync } from "node:fs";
import { join } from "node:path";
import { createLogger, FakeClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startManager, temporaryDirectory } from "../../agent/src/plugins/testing/setup.ts";
import { serveReporterPlugin } from "./index.ts";

let directory: ReturnType<typeof temporaryDirectory>;
beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => directory.remove());

/** A plugin in this directory on a clock that stands still, and the warnings that it logs. */
function serve(socketDir: string) {
  const clock = new FakeClock();
  const warnings: { msg: string }[] = [];
  const log = createLogger("warn", { write: (line) => void warnings.push(JSON.parse(line)) });
  const plugin = serveReporterPlugin({ name: "sample", socketDir, clock, log, async *report() {} });
  return { plugin, clock, warnings: () => warnings.filter(({ msg }) => msg.startsWith("not registered")) };
}

describe("a plugin that is not registered after 10 s", () => {
  it.each([
    ["that is there", "", /^no agent called the socket: no agent runs on this node, it watches another/],
    ["that was missing", "none", /^no agent called the socket: the directory was missing, so this plugin/],
  ])("warns with the directory, %s, and the reason", async (_, name, reason) => {
    const socketDir = join(directory.path, name);
    const { plugin, clock, warnings } = serve(socketDir);
    await plugin.ready;
    await clock.step(9_999);
    expect(warnings()).toEqual([]);
    await clock.step(60_000);
    expect(warnings()).toEqual([
      expect.objectContaining({
        msg: "not registered after 10 s",
        plugin: "sample",
        directory: socketDir,
        socket: plugin.socketPath,
        errorId: "NK1319",
        reason: expect.stringMatching(reason),
      }),
    ]);
    await plugin.stop();
  });

  it("warns again after the socket was removed, with the directory as it was then", async () => {
    const socketDir = join(directory.path, "none");
    const { plugin, clock, warnings } = serve(socketDir);
    const warned = (times: number) =>
      until(`warned ${times} times`, () => warnings().length === times, { clock, stepMs: 1_000 });
    await plugin.ready;
    await warned(1);
    rmSync(plugin.socketPath);
    await warned(2);
    rmSync(socketDir, { recursive: true });
    await warned(3);
    expect(warnings()).toEqual([
      expect.objectContaining({ reason: expect.stringContaining("the directory was missing") }),
      expect.objectContaining({ reason: expect.stringContaining("plugins.allowedUids") }),
      expect.objectContaining({ reason: expect.stringContaining("the directory was missing") }),
    ]);
    await plugin.stop();
  });

  it("warns with the agent's refusal", async () => {
    const agent = startManager(directory.path, { inTreeNames: ["sample"] });
    const { plugin, clock, warnings } = serve(directory.path);
    await until("refused", () => plugin.registration.state === "refused");
    await clock.step(10_000);
    expect(warnings()).toEqual([
      expect.objectContaining({
        reason: expect.stringMatching(/^the agent refused.*reserved for an in-tree/),
      }),
    ]);
    await Promise.all([plugin.stop(), agent.stop()]);
  });

  it("does not warn when it is registered, or stopped before", async () => {
    const agent = startManager(directory.path);
    const { plugin, clock, warnings } = serve(directory.path);
    await until("registered", () => plugin.registration.state === "registered");
    await clock.step(20_000);
    await Promise.all([plugin.stop(), agent.stop()]);
    const stopped = serve(directory.path);
    await stopped.plugin.ready;
    await stopped.plugin.stop();
    await stopped.clock.step(20_000);
    expect([...warnings(), ...stopped.warnings()]).toEqual([]);
  });
});

import { serveDeviceDriver, serveReporterPlugin } from "@nodekeeper/sdk";
import { silentLogger } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { expect, it, onTestFinished } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster } from "./support/cluster.ts";
import { widgets } from "./support/plugins.ts";

async function startNode() {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  // Health names a plugin after two collect intervals and this timeout.
  const agent = await startAgent(cluster, { reportingCallTimeout: "1s" });
  onTestFinished(() => agent.stop());
  return { cluster, agent };
}

async function pluginsList(agent: RunningAgent): Promise<string> {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const args = ["plugins", "list", "--server", agent.address];
  expect(
    await runCli(["node", "nodekeeper", ...args], { write, isTerminal: false, columns: 200 }),
    text,
  ).toBe(0);
  return text;
}

it("a reporter whose report throws is failing with the author's message, and its last values stay", async () => {
  const { cluster, agent } = await startNode();
  let isBroken = false;
  let value = 1;
  const plugin = serveReporterPlugin({
    name: "fans",
    socketDir: agent.pluginDir,
    log: silentLogger,
    async *report(signal) {
      if (isBroken) throw new Error("fan sensor is unplugged");
      yield [widgets("fans", value)];
      await until("the sensor is unplugged", () => isBroken || signal.aborted);
      throw new Error("fan sensor is unplugged");
    },
  });
  onTestFinished(() => plugin.stop());
  await untilWidgets(cluster, "fans", 1);
  expect((await agent.plugin("fans"))?.error).toBeUndefined();

  isBroken = true;
  const message =
    "GetReportContent: fan sensor is unplugged; ListAndWatchReportContent: fan sensor is unplugged";
  await eventually(async () => expect((await agent.plugin("fans"))?.error).toBe(message));
  expect(await pluginsList(agent)).toMatch(/^fans .* failing .* NK1805: GetReportContent: fan sensor is/m);
  await eventually(async () =>
    expect(await agent.ready()).toEqual({
      status: 200,
      text: expect.stringContaining(
        "[+]ReporterFetcherReady ok, but: no content from fans (GetReportContent: fan sensor is unplugged",
      ),
    }),
  );
  expect(agent.logLines).toContainEqual(
    expect.objectContaining({
      plugin: "fans",
      errorId: "NK1805",
      err: expect.stringContaining("fan sensor is unplugged"),
    }),
  );
  expect(cluster.widgets("fans")).toBe("1");

  value = 2;
  isBroken = false;
  await untilWidgets(cluster, "fans", 2);
  await until("it is no longer blamed", async () => !(await agent.plugin("fans"))?.error);
});

it.each([
  [
    "throw",
    () => {
      throw new Error("no driver library");
    },
    "no driver library",
  ],
  ["are not in a pool", () => [{ name: "gpu-0" }], 'pool "gpu-0" has no devices: yield pools with'],
])("a driver whose devices %s is failing with the reason, from its start on", async (_, read, reason) => {
  const { agent } = await startNode();
  const driver = serveDeviceDriver({
    name: "gpu.example.com",
    socketDir: agent.pluginDir,
    log: silentLogger,
    async *devices() {
      yield read();
    },
  });
  onTestFinished(() => driver.stop());
  await eventually(async () =>
    expect(await agent.plugin("gpu.example.com")).toMatchObject({
      state: "registered",
      error: expect.stringContaining(reason),
    }),
  );
});

import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type GoodPlugin, startGoodPlugin, widgets } from "./support/plugins.ts";

let cluster: TestCluster;
let agent: RunningAgent;
let plugin: GoodPlugin;
let file: string;

beforeAll(async () => {
  cluster = await startCluster();
  file = join(cluster.directory, "config.yaml");
  write({ level: "warn", minWriteInterval: "50ms" });
  agent = await startAgent(cluster, { reportingMinWriteInterval: "", logLevel: "" }, file);
  plugin = await startGoodPlugin(agent.pluginDir, "steady", widgets("steady", 1));
  await untilWidgets(cluster, "steady", 1);
});
afterAll(async () => {
  await plugin.stop();
  await agent.stop();
  await cluster.stop();
});

function write({ level, minWriteInterval }: { level: string; minWriteInterval: string }): void {
  const text = `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
log:
  level: ${level}
reporting:
  minWriteInterval: ${minWriteInterval}
`;
  // In one move, as a ConfigMap mount does.
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

const running = () => agent.api("configuration");

it("a changed file applies to the log's level and the write interval", async () => {
  expect(agent.logLines.filter(({ level }) => level === "debug" || level === "info")).toEqual([]);
  write({ level: "debug", minWriteInterval: "1s" });
  await until("it applies", async () => (await running()).reporting.minWriteInterval === 1_000);
  expect((await running()).log.level).toBe("debug");
  await until("finer messages", () => agent.logLines.some(({ level }) => level === "debug"));
  plugin.say(widgets("steady", 2));
  await untilWidgets(cluster, "steady", 2);
  plugin.say(widgets("steady", 3));
  await untilWidgets(cluster, "steady", 3);
  const [third, second] = cluster.writes("customnoderesources").reverse();
  expect(third!.at - second!.at).toBeGreaterThanOrEqual(950);
});

it("a bad file keeps the old configuration and reports what is wrong; a good one after it applies", async () => {
  write({ level: "loud", minWriteInterval: "50ms" });
  const refusal = await until("it is refused", () =>
    agent.logLines.find(({ msg }) => msg?.startsWith("new configuration rejected")),
  );
  expect(refusal).toMatchObject({
    level: "error",
    err: expect.stringMatching(/log\.level.*"loud"/s),
  });
  expect(await running()).toMatchObject({ log: { level: "debug" }, reporting: { minWriteInterval: 1_000 } });
  await until("it is counted", async () =>
    /nodekeeper_config_reloads_total\{[^}]*rejected[^}]*\} 1/.test(await agent.metrics()),
  );
  write({ level: "error", minWriteInterval: "50ms" });
  await until("the good one applies", async () => (await running()).log.level === "error");
  plugin.say(widgets("steady", 4));
  await untilWidgets(cluster, "steady", 4);
});

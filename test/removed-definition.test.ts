import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { startGoodPlugin, widgets } from "./support/plugins.ts";

let cluster: TestCluster;
let agent: RunningAgent;

beforeEach(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster);
});
afterEach(async () => {
  await agent.stop();
  await cluster.stop();
});

it("a definition of CustomNodeResource that is removed while the agent runs is named with its remedy, until it is back", async () => {
  const plugin = await startGoodPlugin(agent.pluginDir, "steady", widgets("steady", 1));
  await untilWidgets(cluster, "steady", 1);
  // As kube-apiserver answers for a path that it no longer serves.
  const message = "the server could not find the requested resource";
  cluster.fault = ({ path }) =>
    path.startsWith("/apis/node.katalyst.kubewharf.io")
      ? { status: 404, body: { kind: "Status", code: 404, reason: "NotFound", message } }
      : undefined;
  plugin.say(widgets("steady", 2));
  const text = await until("the check names the error", async () => {
    const ready = await agent.ready();
    return ready.text.includes("NK1208") ? ready.text : undefined;
  });
  expect(text).toMatch(/ReporterPublished failed: .*does not serve .*CustomNodeResource \(is its CustomRes/);
  cluster.fault = () => undefined;
  await untilWidgets(cluster, "steady", 2);
  await until("it is ready", async () => (await agent.ready()).status === 200);
  await plugin.stop();
});

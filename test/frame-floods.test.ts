import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type FrameFloodOptions, startFrameFlood } from "./support/frame-flood.ts";
import { type Neighbour, startNeighbour } from "./support/neighbour.ts";

let cluster: TestCluster;
let agent: RunningAgent;
let neighbour: Neighbour;

beforeEach(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster);
  neighbour = await startNeighbour(cluster, agent.pluginDir);
});
afterEach(async () => {
  await neighbour.stop();
  await agent.stop();
  await cluster.stop();
});

const reporter = { name: "tiny", type: "ReporterPlugin", version: "v1alpha1" };
const floods: FrameFloodOptions[] = [
  { ...reporter, method: "ListAndWatchReportContent", payload: 1 },
  { ...reporter, method: "GetInfo", payload: 1 },
  {
    name: "tiny.example.com",
    type: "DRAPlugin",
    version: "nodekeeper.devices.v1alpha2",
    method: "ListAndWatchDevices",
    payload: 1,
  },
  { name: "tiny", type: "EvictionPlugin", version: "v1alpha1", method: "ThresholdMet", payload: 1 },
];

it.each(floods)(
  "$type: $method in frames of $payload bytes ends the connection, with a reason",
  async (options) => {
    const flood = await startFrameFlood(agent.pluginDir, options);
    await until("the connection is closed", () => flood.closed() > 0, { explain: () => flood.bytesSent() });
    const isNamed = async () => /too many small HTTP\/2 frames/.test(await rows());
    await until("the reason is shown", isNamed, { explain: rows });
    await neighbour.update();
    // 20,000 frames, and what the kernel had taken before the connection ended.
    expect(flood.bytesSent() / flood.closed()).toBeLessThan(2 * 1024 * 1024);
    flood.stop();
  },
);

async function rows(): Promise<string> {
  return JSON.stringify(await agent.plugins());
}

import { node, status } from "@nodekeeper/sdk";
import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startAgent, TIME_TO_RETURN_MS } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { startNeighbour } from "./support/neighbour.ts";
import { type GoodPlugin, startGoodPlugin } from "./support/plugins.ts";

// What a lost plugin reported last stays published, but never in place of what a live one reports.

let cluster: TestCluster;
const ends: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  cluster = await startCluster();
  ends.push(() => cluster.stop());
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const GPUS = "example.com/gpus";
const gpus = (count: number) => node(status("capacity", { [GPUS]: String(count) }));
const published = () => cluster.node().status.capacity[GPUS];
const untilPublished = (count: number) =>
  until(`${count} are published`, () => published() === String(count), { explain: published });
const grace = { reportingPluginGracePeriod: "10m" };

async function startPlugin(directory: string, name: string, count: number): Promise<GoodPlugin> {
  const plugin = await startGoodPlugin(directory, name, gpus(count));
  ends.push(() => plugin.stop());
  return plugin;
}

it.each([
  ["gpu-reporter-v2", "gpu-reporter"],
  ["gpu-reporter", "gpu-reporter-v2"],
])("%s is replaced by %s: what the live plugin reports is published", async (before, after) => {
  const agent = await startAgent(cluster, grace);
  ends.push(() => agent.stop());
  const old = await startPlugin(agent.pluginDir, before, 8);
  await untilPublished(8);
  await old.stop();
  await until("it is lost", async () => (await agent.plugin(before))?.state === "lost");
  expect(published()).toBe("8");
  const live = await startPlugin(agent.pluginDir, after, 4);
  await untilPublished(4);
  const neighbour = await startNeighbour(cluster, agent.pluginDir);
  ends.push(() => neighbour.stop());
  await neighbour.update();
  expect(published()).toBe("4");
  const { items } = await agent.api("objects/fields?object=v1/Node");
  expect(items.find(({ path }: { path: string }) => path.endsWith(GPUS))).toMatchObject({
    plugin: after,
    others: [before],
  });
  await live.stop();
  await until("both are lost", async () => (await agent.plugin(after))?.state === "lost");
  await startPlugin(agent.pluginDir, before, 6);
  await untilPublished(6);
});

it("after a restart of the agent, plugins that were registered rank as before until they had time to return", async () => {
  const first = await startAgent(cluster, grace);
  const last = await startPlugin(first.pluginDir, "z-gpus", 8);
  await startPlugin(first.pluginDir, "a-gpus", 4);
  await untilPublished(8);
  await first.stop();
  await last.stop();
  const writes = cluster.writes("nodes").length;
  const clock = new SteppedClock();
  const agent = await startAgent(cluster, grace, undefined, clock);
  ends.push(() => agent.stop());
  await until("one is back", async () => (await agent.plugin("a-gpus"))?.state === "registered");
  const neighbour = await startPlugin(agent.pluginDir, "neighbour", 1);
  neighbour.say(node(status("capacity", { "example.com/chips": "1" })));
  await until("a later write", () => cluster.node().status.capacity["example.com/chips"] === "1");
  for (const { body } of cluster.writes("nodes").slice(writes))
    expect(JSON.stringify(body)).not.toContain(`"${GPUS}":"4"`);
  expect(published()).toBe("8");
  clock.advance(TIME_TO_RETURN_MS);
  await untilPublished(4);
});

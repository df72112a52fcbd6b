import { customNodeResource, metadata, type ReportContent, status } from "@nodekeeper/sdk";
import { type ReceivedRequest, SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type RunningAgent, startAgent, TIME_TO_RETURN_MS, untilWidgets } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { type Neighbour, startNeighbour } from "./support/neighbour.ts";
import { startGoodPlugin, widgets } from "./support/plugins.ts";

let cluster: TestCluster;
let agent: RunningAgent;
let before: Neighbour;
let after: Neighbour;

// As a CustomResourceDefinition's schema does: the API server refuses any body that has the marker.
const refusePoison = ({ body }: ReceivedRequest) =>
  JSON.stringify(body ?? {}).includes("poison")
    ? { status: 422, body: { kind: "Status", reason: "Invalid", message: "poison: Invalid value" } }
    : undefined;

beforeAll(async () => {
  cluster = await startCluster();
  cluster.admit = refusePoison;
  agent = await startAgent(cluster, { reportingPluginGracePeriod: "0s" });
  // One before and one after the bad plugin in the order of names.
  before = await startNeighbour(cluster, agent.pluginDir, "a-before");
  after = await startNeighbour(cluster, agent.pluginDir, "z-after");
});
afterAll(async () => {
  await before.stop();
  await after.stop();
  await agent.stop();
  await cluster.stop();
});

async function quarantined(): Promise<Record<string, string>> {
  const objects = await agent.api("objects");
  return objects.find(({ object }: { object: string }) => object.endsWith("CustomNodeResource")).quarantined;
}

async function untilQuarantined(name: string): Promise<void> {
  await until(`${name} is quarantined`, async () => name in (await quarantined()), { explain: quarantined });
}

const poisonedStatus = customNodeResource(status("poison", "x"));
const poisonedLabel = customNodeResource(metadata("labels", { poison: "x" }));
const goodLabel = (value: string) => customNodeResource(metadata("labels", { state: value }));

const cases: [string, ReportContent[], { status: boolean; label: string }][] = [
  ["in the status", [poisonedStatus, goodLabel("old")], { status: true, label: "old" }],
  ["in the main part", [poisonedLabel], { status: false, label: "old" }],
  ["in the status, with a new main part", [poisonedStatus, goodLabel("new")], { status: true, label: "new" }],
  ["in both parts", [poisonedStatus, poisonedLabel], { status: true, label: "old" }],
];

it.each(cases)(
  "a refusal %s: the plugin is named, its last good content stays, others continue",
  async (_, bad) => {
    const plugin = await startGoodPlugin(agent.pluginDir, "bad", widgets("bad", 1), goodLabel("old"));
    try {
      await untilWidgets(cluster, "bad", 1);
      await until("its label", () => cluster.cnr().metadata.labels?.state === "old");
      plugin.say(widgets("bad", 2), ...bad);
      await untilQuarantined("bad");
      expect(Object.keys(await quarantined())).toEqual(["bad"]);
      expect((await quarantined()).bad).toContain("poison: Invalid value");
      await before.update();
      await after.update();
      if (JSON.stringify(bad.map(({ field }) => field.map(({ fieldName }) => fieldName))).includes("poison"))
        expect(cluster.widgets("bad")).toBe("1");
      expect(cluster.cnr().metadata.labels.state).toMatch(/old|new/);
      await until("the plugin's row says it", async () => {
        const row = await agent.plugin("bad");
        return `${row?.error} ${row?.problems.join()}`.includes("poison: Invalid value");
      });
      plugin.say(widgets("bad", 3), goodLabel("newer"));
      await untilWidgets(cluster, "bad", 3);
      await until("its label", () => cluster.cnr().metadata.labels?.state === "newer");
      await until("it is out of quarantine", async () => !("bad" in (await quarantined())));
    } finally {
      await plugin.stop();
      await until("its content is withdrawn", () => cluster.widgets("bad") === undefined);
    }
  },
);

it("refused from its first report, a plugin publishes nothing and delays no other", async () => {
  const plugin = await startGoodPlugin(agent.pluginDir, "bad", widgets("bad", 1), poisonedStatus);
  await untilQuarantined("bad");
  await before.update();
  await after.update();
  expect(cluster.widgets("bad")).toBeUndefined();
  plugin.say(widgets("bad", 2));
  await untilWidgets(cluster, "bad", 2);
  await plugin.stop();
});

it("tries are few while nothing changes", async () => {
  const plugin = await startGoodPlugin(agent.pluginDir, "bad", widgets("bad", 1), poisonedStatus);
  await untilQuarantined("bad");
  await before.update();
  const collections = async () =>
    Number(/^nodekeeper_reporting_messages_total\{plugin="bad"\} (\d+)$/m.exec(await agent.metrics())?.[1]);
  const tries = () => cluster.requests.filter(({ method }) => method === "PATCH").length;
  const count = tries();
  const collected = await collections();
  await until("two more rounds of collecting", async () => (await collections()) >= collected + 2);
  expect(tries() - count).toBeLessThanOrEqual(4);
  await plugin.stop();
});

it("two bad plugins are distinguished from the good ones", async () => {
  const one = await startGoodPlugin(agent.pluginDir, "bad-one", widgets("bad-one", 1), poisonedStatus);
  const two = await startGoodPlugin(agent.pluginDir, "bad-two", widgets("bad-two", 1), poisonedStatus);
  await untilQuarantined("bad-one");
  await untilQuarantined("bad-two");
  await before.update();
  await after.update();
  expect(Object.keys(await quarantined()).sort()).toEqual(["bad-one", "bad-two"]);
  await one.stop();
  await two.stop();
});

it("its last good content outlives a restart of the agent", async () => {
  const plugin = await startGoodPlugin(agent.pluginDir, "bad", widgets("bad", 1), goodLabel("old"));
  await untilWidgets(cluster, "bad", 1);
  await until("its label", () => cluster.cnr().metadata.labels?.state === "old");
  plugin.say(widgets("bad", 2), poisonedStatus, poisonedLabel);
  await untilQuarantined("bad");
  await before.update();
  await agent.stop();
  const writes = cluster.writes("customnoderesources").length;
  agent = await startAgent(cluster, { reportingPluginGracePeriod: "0s" });
  await untilQuarantined("bad");
  await before.update();
  expect(cluster.widgets("bad")).toBe("1");
  expect(cluster.cnr().metadata.labels.state).toBe("old");
  // At no time was it taken away.
  for (const { path, body } of cluster.writes("customnoderesources").slice(writes)) {
    expect(JSON.stringify(body)).toMatch(
      path.endsWith("/status") ? /widgets.example.bad/ : /"state":"old"|poison/,
    );
  }
  plugin.say(widgets("bad", 3));
  await untilWidgets(cluster, "bad", 3);
  await plugin.stop();
});

const isPatch = ({ method }: ReceivedRequest) => method === "PATCH";
const halfMegabyte = (field: string) => customNodeResource(status(field, "x".repeat(600_000)));
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  cluster.admit = refusePoison;
  for (const end of ends.splice(0)) await end();
});
const reasons: [string, ReportContent[], RegExp][] = [
  ["the API server rejects it", [poisonedStatus], /poison: Invalid value/],
  ["it is too large", [halfMegabyte("one"), halfMegabyte("two")], /would make the object larger/],
];

/** Restarts the agent, whose clock passes all times that it waits for plugins. Returns its writes of the object's status. */
async function restartedForGood(): Promise<string[]> {
  await agent.stop();
  const writes = cluster.writes("customnoderesources").length;
  cluster.admit = refusePoison;
  const clock = new SteppedClock();
  agent = await startAgent(cluster, { reportingPluginGracePeriod: "0s" }, undefined, clock);
  await until("the plugin is back", async () => (await agent.plugin("bad"))?.state === "registered");
  await untilQuarantined("bad");
  clock.advance(TIME_TO_RETURN_MS);
  await before.update();
  clock.advance(TIME_TO_RETURN_MS);
  await before.update();
  return cluster
    .writes("customnoderesources")
    .slice(writes)
    .filter(({ path }) => path.endsWith("/status"))
    .map(({ body }) => JSON.stringify(body));
}

it.each(reasons)(
  "%s: the last good content stays after a restart as long as the plugin is registered",
  async (_, bad, reason) => {
    const plugin = await startGoodPlugin(agent.pluginDir, "bad", widgets("bad", 1));
    ends.push(() => plugin.stop());
    await untilWidgets(cluster, "bad", 1);
    // Without the member that was good: only what is stored knows that it belongs to the plugin.
    plugin.say(...bad);
    await untilQuarantined("bad");
    await before.update();
    const writes = await restartedForGood();
    expect((await quarantined()).bad).toMatch(reason);
    expect(cluster.widgets("bad")).toBe("1");
    for (const body of writes) expect(body).toMatch(/widgets.example.bad|poison/);
    plugin.say(widgets("bad", 2));
    await untilWidgets(cluster, "bad", 2);
    await plugin.stop();
    await until("its content is withdrawn", () => cluster.widgets("bad") === undefined);
  },
);

it.each(reasons)(
  "%s: the last good content also stays if the agent is restarted before it can publish anything",
  async (_, bad, reason) => {
    const plugin = await startGoodPlugin(agent.pluginDir, "bad", widgets("bad", 1));
    ends.push(() => plugin.stop());
    await untilWidgets(cluster, "bad", 1);
    cluster.admit = (request) => (isPatch(request) ? { status: 503, body: { kind: "Status" } } : undefined);
    const size = (await agent.plugin("bad"))?.contentBytes;
    plugin.say(widgets("bad", 2), ...bad);
    await until("the agent has read it", async () => (await agent.plugin("bad"))?.contentBytes !== size);
    const writes = await restartedForGood();
    expect((await quarantined()).bad).toMatch(reason);
    expect(cluster.widgets("bad")).toBe("1");
    for (const body of writes) expect(body).toMatch(/widgets.example.bad/);
    plugin.say(widgets("bad", 3));
    await untilWidgets(cluster, "bad", 3);
    await plugin.stop();
    await until("its content is withdrawn", () => cluster.widgets("bad") === undefined);
  },
);

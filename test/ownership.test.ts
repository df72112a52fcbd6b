import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodes } from "@nodekeeper/core/kube";
import { customNodeResource, metadata, node, spec, status } from "@nodekeeper/sdk";
import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { agentFlags, startAgent, TIME_TO_RETURN_MS, untilWidgets } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import { clientAs } from "./support/other-client.ts";
import { type GoodPlugin, startGoodPlugin, widgets } from "./support/plugins.ts";

// The state directory may be lost, or be an old one. What is ours on the server is the server's to say: nothing of a
// plugin that comes back is withdrawn, nothing of others is ever touched, and what no plugin reports is released.

const states = {
  kept: () => {},
  deleted: (directory: string) => rmSync(directory, { recursive: true }),
  corrupt: (directory: string) => {
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    writeFileSync(join(directory, "nodekeeper.db"), Buffer.alloc(16_384, "not a database "));
  },
  "from before the plugin came": (directory: string, older: string) => {
    rmSync(directory, { recursive: true });
    cpSync(older, directory, { recursive: true });
  },
};
type State = keyof typeof states;

const GPUS = "example.com/gpus";
const foreign = { key: "theirs", effect: "NoSchedule", qosLevel: "shared_cores" };
const own = { key: "ours", effect: "NoSchedule", qosLevel: "reclaimed_cores" };

/** What the server has of the plugin, and what others have there. */
function held(cluster: TestCluster) {
  const cnr = cluster.cnr();
  const live = cluster.node();
  const taints: { key: string }[] = cnr.spec?.taints ?? [];
  const properties: { propertyName: string }[] = cnr.spec?.nodeResourceProperties ?? [];
  return {
    foreignTaint: taints.some(({ key }) => key === foreign.key),
    ownTaint: taints.some(({ key }) => key === own.key),
    label: live.metadata.labels.gpus,
    property: properties.some(({ propertyName }) => propertyName === "gpu_model"),
    capacity: live.status.capacity[GPUS],
    allocatable: live.status.allocatable[GPUS],
    ofKubelet: live.status.capacity.cpu,
  };
}

const ofOthers = { foreignTaint: true, ofKubelet: "4" };
const withPlugin = (value: number) => ({
  ...ofOthers,
  ownTaint: true,
  label: String(value),
  property: true,
  capacity: "8",
  allocatable: String(value),
});
const without = {
  ...ofOthers,
  ownTaint: false,
  label: undefined,
  property: false,
  capacity: undefined,
  allocatable: undefined,
};

function gpuReport(value: number) {
  return [
    customNodeResource(
      spec("taints", [own]),
      spec("nodeResourceProperties", [{ propertyName: "gpu_model", propertyValues: ["x"] }]),
    ),
    node(
      metadata("labels", { gpus: String(value) }),
      status("capacity", { [GPUS]: "8" }),
      status("allocatable", { [GPUS]: String(value) }),
    ),
  ];
}

// On every object, so that the agent writes them all.
function neighbourReport(value: number) {
  const chips = { "example.com/chips": String(value) };
  return [
    widgets("neighbour", value),
    customNodeResource(
      spec("nodeResourceProperties", [{ propertyName: "chips", propertyValues: [`${value}`] }]),
    ),
    node(
      metadata("labels", { chips: String(value) }),
      status("capacity", chips),
      status("allocatable", chips),
    ),
  ];
}

/** A cluster in which an agent published for two plugins and has stopped, with the state as the case has it. */
async function afterFirstAgent(state: State) {
  const cluster = await startCluster();
  cluster.server.store.put({
    apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
    kind: "CustomNodeResource",
    metadata: { name: NODE },
    spec: { taints: [foreign] },
  });
  const { pluginDirectories: plugins, stateDir } = agentFlags(cluster);
  const older = join(cluster.directory, "older");
  mkdirSync(older);
  const neighbour = await startGoodPlugin(plugins!, "neighbour", ...neighbourReport(1));
  const first = await startAgent(cluster);
  await untilPublished(cluster, 1);
  cpSync(stateDir!, older, { recursive: true });
  const gpus = await startGoodPlugin(plugins!, "gpus", ...gpuReport(1));
  await until("the plugin's report", () => matches(cluster, withPlugin(1)), { explain: () => held(cluster) });
  return { cluster, neighbour, gpus, plugins: plugins!, first, stateDir: stateDir!, older, state };
}

async function untilPublished(cluster: TestCluster, value: number): Promise<void> {
  await untilWidgets(cluster, "neighbour", value);
  await until("the neighbour's report on the Node", () => {
    const { metadata, status } = cluster.node();
    return metadata.labels.chips === `${value}` && status.allocatable["example.com/chips"] === `${value}`;
  });
}

function matches(cluster: TestCluster, expected: ReturnType<typeof held>): boolean {
  expect(held(cluster)).toEqual(expected);
  return true;
}

describe.concurrent.each(Object.keys(states) as State[])("with its state %s, an agent", (state) => {
  it.each(["soon", "late", "never"])("leaves the right fields when the plugin is back %s", async (back) => {
    const { cluster, neighbour, first, plugins, stateDir, older, ...setup } = await afterFirstAgent(state);
    let gpus: GoodPlugin = setup.gpus;
    await first.stop();
    if (back !== "soon") await gpus.stop();
    states[state](stateDir, older);
    const grace = back === "never" ? "0s" : "10m";
    const clock = new SteppedClock();
    const settings = { reportingPluginGracePeriod: grace };
    const second = await startAgent(cluster, settings, undefined, clock);
    neighbour.say(...neighbourReport(2));
    await untilPublished(cluster, 2);
    // Whatever became of its state: nothing is withdrawn of a plugin that may be on its way back.
    if (back !== "never") matches(cluster, withPlugin(1));
    if (back === "never") clock.advance(TIME_TO_RETURN_MS);
    if (back === "late") gpus = await startGoodPlugin(plugins, "gpus", ...gpuReport(2));
    if (back === "soon") gpus.say(...gpuReport(2));
    const end = back === "never" ? without : withPlugin(2);
    await until("the end", () => matches(cluster, end), {
      explain: () => held(cluster),
    });
    if (back !== "never") {
      gpus.say();
      await until("it reports no more", () => matches(cluster, without), { explain: () => held(cluster) });
    }
    // Later writes, too, leave others' taint where it is.
    neighbour.say(...neighbourReport(3));
    await untilPublished(cluster, 3);
    matches(cluster, without);
    const objects = await second.api("objects");
    expect(objects.flatMap(({ unclaimed }: { unclaimed: string[] }) => unclaimed)).toEqual([]);
    await Promise.all([second.stop(), neighbour.stop(), gpus.stop()]);
    await cluster.stop();
  });
});

it("a quantity of a Node that another client reports too stays when the plugin no longer reports it", async () => {
  const cluster = await startCluster();
  const operator = await clientAs(cluster, "kubectl");
  const capacity = { [GPUS]: "8" };
  await operator.mergePatch(nodes, NODE, { status: { capacity } }, { subresource: "status" });
  operator.close();
  const gpus = await startGoodPlugin(agentFlags(cluster).pluginDirectories!, "gpus", ...gpuReport(1));
  const agent = await startAgent(cluster);
  await until("the plugin's report", () => held(cluster).allocatable === "1");
  gpus.say();
  await until(
    "it reports no more",
    () => held(cluster).label === undefined && held(cluster).allocatable === undefined,
  );
  expect(held(cluster)).toMatchObject({ capacity: "8", ofKubelet: "4" });
  await Promise.all([agent.stop(), gpus.stop()]);
  await cluster.stop();
});

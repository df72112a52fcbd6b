import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConditionType, ThresholdMetType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { NODE, type SeenRequest, startCluster, type TestCluster } from "./support/cluster.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
  untilNextRounds,
} from "./support/eviction-plugin.ts";
import { type GoodPlugin, startGoodPlugin, widgets } from "./support/plugins.ts";

// Dry run writes nothing about eviction to the API server, whatever plugins report and whatever is there already.
const PREFIX = "node.katalyst.kubewharf.io";
const notify = { "katalyst.kubewharf.io/pod_soft_evict_notify": "true" };
const ofKatalyst = {
  key: `${PREFIX}/MemoryPressure`,
  effect: "NoSchedule",
  timeAdded: "2026-11-20T00:00:00Z",
};
const ofKatalystForReclaimed = { ...ofKatalyst, qosLevel: "reclaimed_cores" };

let cluster: TestCluster;
let clock: SteppedClock;
let agent: RunningAgent;
let plugins: TestEvictionPlugin[];
let reporter: GoodPlugin;

beforeEach(async () => {
  cluster = await startCluster();
  clock = new SteppedClock();
  plugins = [];
  cluster.addPod("web");
  cluster.addPod("notified", { metadata: { annotations: notify } });
});

afterEach(async () => {
  await agent?.stop();
  await Promise.all([reporter?.stop(), ...plugins.map((plugin) => plugin.stop())]);
  await cluster.stop();
});

const noticesPath = () => join(cluster.directory, "notices");

/** @param dryRunPlugins undefined: the setting is left out of the configuration */
async function start(dryRunPlugins: string | undefined): Promise<void> {
  const file = join(cluster.directory, "config.yaml");
  configure(dryRunPlugins);
  const flags = {
    // The file has it.
    evictionDryRunPlugins: "",
    evictionTaintPrefix: PREFIX,
    evictionSoftEvictionNotifyPath: noticesPath(),
    reportingPluginGracePeriod: "1s",
  };
  agent = await startAgent(cluster, flags, file, clock);
}

function configure(dryRunPlugins: string | undefined): void {
  const eviction = dryRunPlugins === undefined ? "" : `eviction: { dryRunPlugins: [${dryRunPlugins}] }\n`;
  writeFileSync(
    join(cluster.directory, "config.yaml"),
    `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n${eviction}`,
  );
}

/** Taints of another client on both objects, as while katalyst is live on the node. */
function addForeignTaints(): void {
  const node = cluster.node();
  cluster.server.store.put({ ...node, spec: { ...node.spec, taints: [ofKatalyst] } });
  cluster.server.store.put({
    apiVersion: "node.katalyst.kubewharf.io/v1alpha1",
    kind: "CustomNodeResource",
    metadata: { name: NODE },
    spec: { taints: [ofKatalystForReclaimed] },
  });
}

/** Plugins that report a condition of each object, and request a pod each, with hard and with soft thresholds. */
async function addPlugins(): Promise<void> {
  const { NODE_CONDITION, CNR_CONDITION } = ConditionType;
  const { HARD_MET, SOFT_MET } = ThresholdMetType;
  const rows = [
    ["of-node", "DiskPressure", NODE_CONDITION, "NoSchedule", HARD_MET, "web"],
    ["of-cnr", "NetPressure", CNR_CONDITION, "reclaimed_cores/NoSchedule", HARD_MET, "web"],
    ["soft", "SoftPressure", NODE_CONDITION, "NoSchedule", SOFT_MET, "notified"],
  ] as const;
  for (const [name, conditionName, conditionType, effect, metType, pod] of rows) {
    const plugin = await startEvictionPlugin(agent.pluginDir, name);
    plugins.push(plugin);
    const condition = { conditionType, conditionName, effects: [effect], metCondition: true };
    plugin.threshold = { ...hardPressure, metType, condition };
    plugin.top = pick([pod]);
  }
  await until("registration", () => plugins.every(({ registered }) => registered === true));
}

const rounds = () => Promise.all(plugins.map(untilNextRounds));

/** Rounds for longer than removals wait after a start, with the thresholds met and then cleared. */
async function longRun(): Promise<void> {
  for (const ms of [0, 61_000, 61_000]) {
    clock.advance(ms);
    await rounds();
  }
  for (const plugin of plugins) plugin.threshold = {};
  for (const ms of [0, 61_000, 600_000]) {
    clock.advance(ms);
    await rounds();
  }
  // Written after all that the agent had to write before.
  reporter.say(widgets("neighbour", 2));
  await until("a later report", () => cluster.widgets("neighbour") === "2");
}

async function addReporter(): Promise<void> {
  reporter = await startGoodPlugin(agent.pluginDir, "neighbour", widgets("neighbour", 1));
  await until("its report", () => cluster.widgets("neighbour") === "1");
}

async function outputOf(...command: string[]): Promise<string> {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const argv = ["node", "nodekeeper", ...command, "--server", agent.address];
  expect(await runCli(argv, { write, isTerminal: false, columns: 120 })).toBe(0);
  return text;
}

const explainNode = () => outputOf("explain", "node");
const loggedModes = () => agent.logLines.filter(({ msg }) => msg === "eviction mode").map(({ mode }) => mode);

const warnings = () =>
  agent.logLines.filter(({ msg }) => msg === "dry run leaves taints that this agent added before");

const lineOf = ({ method, path, body }: SeenRequest) => `${method} ${path} ${JSON.stringify(body ?? null)}`;
/** All requests that may change something, except for the reporter plugin's report, which has a part without fields. */
const writes = (since = 0) =>
  cluster.requests
    .slice(since)
    .filter(({ method }) => method !== "GET")
    .map(lineOf)
    .filter(
      (line) =>
        !/^PATCH \S*\/customnoderesources\/worker-1(\/status)? .*(widgets|"metadata":\{"name":"worker-1"\}\})/.test(
          line,
        ),
    );
const nodeTaints = (): string[] =>
  (cluster.node().spec.taints ?? []).map(({ key }: { key: string }) => key.split("/")[1]);
const cnrTaints = (): string[] =>
  (cluster.cnr()?.spec?.taints ?? []).map(({ key }: { key: string }) => key.split("/")[1]);

it.each([
  ["set", '"*"'],
  ["the default", undefined],
])(
  "that is %s writes nothing beside a live katalyst: its taints stay, and there is no taint, eviction, Event or notice of ours",
  async (_, dryRunPlugins) => {
    addForeignTaints();
    const [node, cnr] = [cluster.node(), cluster.cnr()];
    mkdirSync(join(noticesPath(), "gone@@__@@default"), { recursive: true });
    await start(dryRunPlugins);
    await addReporter();
    await addPlugins();
    await longRun();
    expect(writes()).toEqual([]);
    expect(cluster.node()).toEqual(node);
    expect(cluster.cnr().spec).toEqual(cnr.spec);
    expect(cluster.cnr().metadata.annotations).toBeUndefined();
    expect(readdirSync(noticesPath())).toEqual(["gone@@__@@default"]);
    expect(await explainNode()).toContain(
      "Taints of the Node\n  node.katalyst.kubewharf.io/MemoryPressure:NoSchedule: not known to be added by this agent; it is left as it is\n",
    );
    expect(warnings()).toEqual([]);
    // The decisions were made.
    const { items } = await agent.api("eviction/evictions");
    expect(items.length).toBeGreaterThan(0);
    expect(items.every(({ dryRun }: { dryRun: boolean }) => dryRun)).toBe(true);
    // Dry run is visible, with what ends it.
    const [line] = agent.logLines.filter(({ msg }) => msg === "eviction mode");
    const meaning =
      /^dry run: no pod is evicted, and no taint is added or removed; to evict, set eviction\.dryRunPlugins to \[\] /;
    expect(line).toMatchObject({ mode: "dryRun", meaning: expect.stringMatching(meaning) });
    expect(await outputOf("status")).toMatch(new RegExp(`^Eviction: +${meaning.source.slice(1)}`, "m"));
  },
);

it("leaves the taints of its live time when dry run begins, at a restart and without one, until it is live again", async () => {
  await start("");
  await addReporter();
  await addPlugins();
  const hasBoth = () => nodeTaints().includes("DiskPressure") && cnrTaints().includes("NetPressure");
  await until("the taints", hasBoth, { explain: () => [cluster.node().spec, cluster.cnr()?.spec] });
  configure('"*"');
  await until("dry run", async () => (await agent.api("node")).eviction.mode === "dryRun");
  await rounds();
  const [node, cnr] = [cluster.node().spec, cluster.cnr().spec];
  expect([nodeTaints(), cnrTaints()]).toEqual([["DiskPressure", "SoftPressure"], ["NetPressure"]]);
  // Without a restart too.
  await until("the warnings", () => warnings().length === 2);
  const before = cluster.requests.length;
  const aboutTaints = () => writes(before).filter((line) => /eviction|events|nodes\/worker-1/.test(line));
  await longRun();
  expect(aboutTaints()).toEqual([]);
  expect([cluster.node().spec, cluster.cnr().spec]).toEqual([node, cnr]);

  await agent.stop();
  await start('"*"');
  await until("registration", async () => {
    const found = await agent.plugins();
    return found.filter(({ state }) => state === "registered").length === plugins.length + 1;
  });
  await longRun();
  expect(aboutTaints()).toEqual([]);
  expect([cluster.node().spec, cluster.cnr().spec]).toEqual([node, cnr]);
  expect(cluster.cnr().metadata.annotations["nodekeeper.dev/own-taints"]).toContain("NetPressure");

  const taint = `${PREFIX}/DiskPressure:NoSchedule`;
  const soft = `${PREFIX}/SoftPressure:NoSchedule`;
  const remedy = `enable eviction, or run: kubectl taint node worker-1 ${taint}- ${soft}-`;
  const ofCnr = {
    customNodeResource: NODE,
    taints: [`${PREFIX}/NetPressure:NoSchedule for reclaimed_cores`],
    remedy: `enable eviction, or run: kubectl edit customnoderesource ${NODE}, and remove them from spec.taints`,
  };
  const found = [expect.objectContaining({ taints: [taint, soft], remedy }), expect.objectContaining(ofCnr)];
  expect(warnings()).toHaveLength(2);
  expect(warnings()).toEqual(expect.arrayContaining(found));
  const left = `${taint}: added by this agent; dry run leaves it; "kubectl taint node worker-1 ${taint}-" removes it`;
  await until("its explanation", async () => (await explainNode()).includes(left));
  expect(await explainNode()).toContain("No condition is set by Nodekeeper.");

  configure("");
  await until("live", async () => (await agent.api("node")).eviction.mode === "live");
  expect(loggedModes()).toEqual(["dryRun", "live"]);
  expect(await outputOf("status")).toMatch(/^Eviction: +live: pods are evicted$/m);
  clock.advance(61_000);
  await rounds();
  await until("the Node without them", () => nodeTaints().length === 0, {
    explain: () => cluster.node().spec,
  });
  // Published objects are compared every ten minutes.
  clock.advance(800_000);
  await until("the CustomNodeResource without them", () => cnrTaints().length === 0, {
    explain: () => cluster.cnr(),
  });
});

it("restores no taint that another client removed, and no stored one, while it is in dry run", async () => {
  await start("");
  await addReporter();
  await addPlugins();
  const hasBoth = () => nodeTaints().includes("DiskPressure") && cnrTaints().includes("NetPressure");
  await until("the taints", hasBoth);
  await agent.stop();
  const { spec: nodeSpec, ...node } = cluster.node();
  cluster.server.store.put({ ...node, spec: { ...nodeSpec, taints: [] } });
  const { spec: cnrSpec, ...cnr } = cluster.cnr();
  cluster.server.store.put({ ...cnr, spec: { ...cnrSpec, taints: [] } });
  const before = cluster.requests.length;
  await start('"*"');
  await until("registration", async () => {
    const found = await agent.plugins();
    return found.filter(({ state }) => state === "registered").length === plugins.length + 1;
  });
  await longRun();
  expect([nodeTaints(), cnrTaints()]).toEqual([[], []]);
  expect(writes(before).filter((line) => /Pressure/.test(line))).toEqual([]);
});

it("of one plugin sets no taint and writes no Event or notice for it, and removes only its own earlier one", async () => {
  addForeignTaints();
  await start("");
  await addReporter();
  await addPlugins();
  await until(
    "the taints",
    () => nodeTaints().includes("SoftPressure") && nodeTaints().includes("DiskPressure"),
  );
  configure('"*", -of-node');
  await until("dry run of some", async () => (await agent.api("node")).eviction.mode === "mixed");
  expect(loggedModes()).toEqual(["live", "mixed"]);
  expect(await outputOf("status")).toMatch(
    /^Eviction: +partly dry run: requests of all plugins except of-node are only recorded; to evict for all/m,
  );
  clock.advance(61_000);
  await until("the taint of the plugin in dry run is removed", () => !nodeTaints().includes("SoftPressure"), {
    explain: () => cluster.node().spec,
  });
  expect(nodeTaints()).toEqual(["MemoryPressure", "DiskPressure"]);
  const before = cluster.requests.length;
  await rounds();
  expect(
    writes(before).filter(
      (line) =>
        /SoftPressure|SoftEvictionNotice|NetPressure/.test(line) && !/NodePressureUntainted/.test(line),
    ),
  ).toEqual([]);
});

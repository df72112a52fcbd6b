import {
  ConditionType,
  type DeepPartial,
  type ThresholdMetResponse,
} from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { customNodeResource, metadata, node, spec } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import {
  hardPressure,
  startEvictionPlugin,
  type TestEvictionPlugin,
  untilNextRounds,
} from "./support/eviction-plugin.ts";
import { startGoodPlugin } from "./support/plugins.ts";

let cluster: TestCluster;
let agent: RunningAgent;
let plugin: TestEvictionPlugin;

const flags = { evictionConditionTransitionPeriod: "1s" };

beforeEach(async () => {
  cluster = await startCluster();
  agent = await startAgent(cluster, flags);
  plugin = await startEvictionPlugin(agent.pluginDir, "pressure");
  await until("registration", () => plugin.registered === true);
  // An agent with a stored state may remove taints with its first whole round; one without waits for a minute.
  plugin.threshold = { metType: hardPressure.metType! };
  await until("a state", async () =>
    /nodekeeper_eviction_rounds_total{result="done"} [1-9]/.test(await agent.metrics()),
  );
  plugin.threshold = {};
  await agent.stop();
  agent = await startAgent(cluster, flags);
  await untilRegistered();
});

afterEach(async () => {
  await plugin.stop();
  await agent.stop();
  await cluster.stop();
});

const untilRegistered = () =>
  until("the plugin's registration", async () => {
    const row = await agent.plugin("pressure");
    return row?.state === "registered";
  });

function pressure(type: ConditionType, effects: string[]): DeepPartial<ThresholdMetResponse> {
  const condition = { conditionType: type, conditionName: "Squeeze", effects, metCondition: true };
  return { ...hardPressure, condition };
}

const nodePressure = pressure(ConditionType.NODE_CONDITION, ["NoSchedule"]);
const cnrPressure = pressure(ConditionType.CNR_CONDITION, [
  "reclaimed_cores/NoSchedule",
  "bad",
  "shared_cores/X",
]);
const keys = () =>
  (cluster.node().spec?.taints ?? []).map(
    ({ key, effect }: { key: string; effect: string }) => `${key}:${effect}`,
  );
// biome-ignore lint/suspicious/noExplicitAny: a taint as stored
const cnrTaints = (): any[] => cluster.cnr()?.spec?.taints ?? [];
const explain = () => ({ node: cluster.node()?.spec, cnr: cluster.cnr()?.spec });

function setTaints(taints: object[]): void {
  const node = cluster.node();
  cluster.server.store.put({ ...node, spec: { ...node.spec, taints } });
}

it("a condition becomes a taint of the Node, is restored when another client removes it, and is removed with the condition", async () => {
  const foreign = { key: "example.com/maintenance", effect: "NoSchedule", timeAdded: "2026-01-01T00:00:00Z" };
  setTaints([foreign]);
  plugin.threshold = nodePressure;
  await until("the taint", () => keys().includes("nodekeeper.dev/Squeeze:NoSchedule"), { explain });
  const [first, added] = cluster.node().spec.taints;
  expect(first).toEqual(foreign);
  expect(added).toMatchObject({ timeAdded: expect.stringMatching(/^\d{4}-.*Z$/) });

  setTaints([{ key: "example.com/other", effect: "NoExecute" }]);
  await until("it is put back", () => keys().length === 2, { explain });
  expect(keys()).toEqual(["example.com/other:NoExecute", "nodekeeper.dev/Squeeze:NoSchedule"]);

  // Somebody writes between our reading and our writing.
  let meddled = false;
  cluster.admit = ({ method, path }) => {
    if (method !== "PATCH" || !path.endsWith("/nodes/worker-1") || meddled) return undefined;
    meddled = true;
    setTaints([...cluster.node().spec.taints, { key: "example.com/late", effect: "NoSchedule" }]);
    return undefined;
  };
  plugin.threshold = {};
  await until("it goes", () => !keys().includes("nodekeeper.dev/Squeeze:NoSchedule"), { explain });
  expect(keys()).toEqual(["example.com/other:NoExecute", "example.com/late:NoSchedule"]);

  // A new agent, with the state of the old one, opens with its first whole round.
  plugin.threshold = nodePressure;
  await until("the taint again", () => keys().length === 3, { explain });
  await agent.stop();
  const seen = cluster.requests.length;
  agent = await startAgent(cluster, flags);
  await untilRegistered();
  await untilNextRounds(plugin);
  expect(keys()).toHaveLength(3);
  const writes = cluster.requests
    .slice(seen)
    .filter(({ method, path, body }) => method === "PATCH" && path.endsWith("/nodes/worker-1") && body);
  expect(writes.filter(({ body }) => JSON.stringify(body).includes("taints"))).toEqual([]);
});

it("a condition of the CustomNodeResource becomes a taint there, beside what reporters report", async () => {
  const reported = { key: "nodekeeper.dev/hot", effect: "NoSchedule", qosLevel: "shared_cores" };
  const reporter = await startGoodPlugin(
    agent.pluginDir,
    "hot",
    customNodeResource(spec("taints", [reported])),
  );
  try {
    await until("the reporter's taint", () => cnrTaints().length === 1, { explain });
    plugin.threshold = cnrPressure;
    await until("ours", () => cnrTaints().length === 2, { explain });
    expect(cnrTaints()).toEqual(
      expect.arrayContaining([
        reported,
        {
          key: "nodekeeper.dev/Squeeze",
          effect: "NoSchedule",
          qosLevel: "reclaimed_cores",
          timeAdded: expect.any(String),
        },
      ]),
    );
    plugin.threshold = {};
    await until("it goes", () => cnrTaints().length === 1, { explain });
    expect(cnrTaints()).toEqual([reported]);
    expect(keys()).toEqual([]);
  } finally {
    await reporter.stop();
  }
});

it("a taint of another client stays, with our prefix and even where it is just what a condition requires", async () => {
  const theirs = [
    { key: "nodekeeper.dev/Squeeze", effect: "NoSchedule", value: "by-hand" },
    { key: "nodekeeper.dev/Other", effect: "NoExecute" },
  ];
  setTaints(theirs);
  plugin.threshold = nodePressure;
  await until("the condition", async () => (await agent.api("eviction/node")).conditions.length === 1);
  await untilNextRounds(plugin);
  plugin.threshold = {};
  await until("it clears", async () => (await agent.api("eviction/node")).conditions.length === 0);
  await untilNextRounds(plugin);
  expect(cluster.node().spec.taints).toEqual(theirs);
  expect(cluster.node().metadata.annotations?.["nodekeeper.dev/own-taints"]).toBeUndefined();
});

it("the annotation proves the agent's taints beside annotations that plugins report, and is removed with the last", async () => {
  const own = () => cluster.node().metadata.annotations?.["nodekeeper.dev/own-taints"];
  const reporter = await startGoodPlugin(
    agent.pluginDir,
    "notes",
    node(metadata("annotations", { note: "1" })),
  );
  try {
    await until("its annotation", () => cluster.node().metadata.annotations?.note === "1");
    plugin.threshold = nodePressure;
    await until("ours", () => own() === '["nodekeeper.dev/Squeeze:NoSchedule"]', { explain });
    reporter.say(node(metadata("annotations", { other: "2" })));
    await until("its next report", () => cluster.node().metadata.annotations.other === "2");
    expect(cluster.node().metadata.annotations.note).toBeUndefined();
    expect(own()).toBe('["nodekeeper.dev/Squeeze:NoSchedule"]');
    plugin.threshold = {};
    await until("it is removed", () => keys().length === 0 && own() === undefined, { explain });
    expect(cluster.node().metadata.annotations.other).toBe("2");
  } finally {
    await reporter.stop();
  }
});

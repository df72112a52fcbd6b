import { join } from "node:path";
import { ConditionType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent, TIME_TO_RETURN_MS } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import { hardPressure, startEvictionPlugin, type TestEvictionPlugin } from "./support/eviction-plugin.ts";

// Taints are what they should be, or health says why not, whatever other clients and the API server do.
let cluster: TestCluster;
let agent: RunningAgent;
let plugin: TestEvictionPlugin | undefined;

beforeEach(async () => {
  cluster = await startCluster();
});

afterEach(async () => {
  await plugin?.stop();
  await agent?.stop();
  await cluster.stop();
});

async function addPlugin(): Promise<TestEvictionPlugin> {
  const added = await startEvictionPlugin(agent.pluginDir, "pressure");
  plugin = added;
  await until("registration", () => added.registered === true, { explain: () => agent.logLines });
  return added;
}

describe("taints of the Node", () => {
  const squeeze = {
    ...hardPressure,
    condition: {
      conditionType: ConditionType.NODE_CONDITION,
      conditionName: "Squeeze",
      effects: ["NoSchedule"],
      metCondition: true,
    },
  };
  const key = "nodekeeper.dev/Squeeze";
  const taint = () => cluster.node()?.spec?.taints?.find((one: { key: string }) => one.key === key);
  const isNode = (path: string) => path.endsWith("/nodes/worker-1");
  const isNodeList = (path: string, query: URLSearchParams) =>
    path.endsWith("/nodes") && (query.get("fieldSelector") ?? "").includes("worker-1");
  const forbidden = {
    status: 403,
    body: {
      kind: "Status",
      code: 403,
      reason: "Forbidden",
      message: 'nodes is forbidden: User "agent" cannot list resource "nodes" in API group ""',
    },
  };
  const checkOf = async (name: string) =>
    (await agent.ready()).text.split("\n").find((line) => line.includes(name)) ?? "";
  const rounds = async () => {
    const line = /rounds_total\{result="done"\} (\d+)/.exec(await agent.metrics());
    return Number(line?.[1] ?? 0);
  };

  it("are set where the Node can't be listed, and health names the missing right", async () => {
    cluster.fault = ({ path, query }) => (isNodeList(path, query) ? forbidden : undefined);
    agent = await startAgent(cluster);
    (await addPlugin()).threshold = squeeze;
    await until("the taint", () => taint() !== undefined);
    await eventually(async () =>
      expect(await checkOf("EvictionTaintsPublished")).toMatch(/failed: .*cannot list resource "nodes"/),
    );
    cluster.fault = () => undefined;
    await eventually(async () => expect(await checkOf("EvictionTaintsPublished")).toMatch(/ ok/));
  });

  it("are not written again before the time of Retry-After", async () => {
    const busy = { kind: "Status", code: 429, reason: "TooManyRequests", message: "slow down" };
    const isPatch = ({ method, path, body }: { method: string; path: string; body?: unknown }) =>
      method === "PATCH" && isNode(path) && JSON.stringify(body ?? {}).includes("taints");
    cluster.admit = (request) =>
      isPatch(request) ? { status: 429, headers: { "retry-after": "600" }, body: busy } : undefined;
    agent = await startAgent(cluster);
    (await addPlugin()).threshold = squeeze;
    await until("a write", () => cluster.requests.some(isPatch));
    const before = await rounds();
    await until("three rounds more", async () => (await rounds()) >= before + 3);
    expect(cluster.requests.filter(isPatch)).toHaveLength(1);
  });

  it("are put back when another client changes their value, and a deleted Node fails no check", async () => {
    agent = await startAgent(cluster);
    (await addPlugin()).threshold = squeeze;
    await until("the taint", () => taint() !== undefined);
    const node = cluster.node();
    const changed = { key, effect: "NoSchedule", value: "by-hand" };
    const other = { key: "example.com/other", effect: "NoSchedule", value: "x" };
    cluster.server.store.put({ ...node, spec: { ...node.spec, taints: [changed, other] } });
    await until("the value is put back", () => taint() && !taint().value);
    expect(cluster.node().spec.taints).toContainEqual(other);

    cluster.server.store.delete("nodes", "worker-1");
    const before = await rounds();
    await until("two rounds more", async () => (await rounds()) >= before + 2);
    expect(await checkOf("EvictionTaintsPublished")).toMatch(/ ok/);
    cluster.server.seedNode("worker-1");
    await until("the new Node has the taint", () => taint() !== undefined);
  });
});

describe("taints of the CustomNodeResource", () => {
  const squeeze = {
    ...hardPressure,
    condition: {
      conditionType: ConditionType.CNR_CONDITION,
      conditionName: "Squeeze",
      effects: ["reclaimed_cores/NoSchedule"],
      metCondition: true,
    },
  };
  const taintKeys = (): string[] =>
    (cluster.cnr()?.spec?.taints ?? []).map(({ key }: { key: string }) => key);

  it("are removed after lost state, as their annotation proves them, and foreign ones with their prefix stay", async () => {
    const flags = { evictionTaintPrefix: "pressure.example.org", reportingPluginGracePeriod: "1s" };
    agent = await startAgent(cluster, flags);
    (await addPlugin()).threshold = squeeze;
    await until("the taint", () => taintKeys().includes("pressure.example.org/Squeeze"));
    plugin!.threshold = {};
    await agent.stop();
    const { spec } = cluster.cnr();
    const other = { key: "pressure.example.org/Other", effect: "NoSchedule", qosLevel: "reclaimed_cores" };
    cluster.server.store.put({ ...cluster.cnr(), spec: { ...spec, taints: [...spec.taints, other] } });
    const clock = new SteppedClock();
    const newState = { ...flags, stateDir: join(cluster.directory, "new-state") };
    agent = await startAgent(cluster, newState, undefined, clock);
    clock.advance(TIME_TO_RETURN_MS);
    await until("only the foreign taint is left", () => taintKeys().join() === other.key, {
      explain: () => cluster.cnr(),
    });
  });

  it("that can't be published because the CustomResourceDefinition is missing fail a check that reports it", async () => {
    const message = "the server could not find the requested resource";
    cluster.fault = ({ path }) =>
      path.startsWith("/apis/node.katalyst.kubewharf.io")
        ? { status: 404, body: { kind: "Status", code: 404, reason: "NotFound", message } }
        : undefined;
    agent = await startAgent(cluster);
    (await addPlugin()).threshold = squeeze;
    await eventually(async () => {
      const { status, text } = await agent.ready();
      expect(status).toBe(503);
      expect(text).toMatch(/ReporterPublished failed: .*CustomNodeResource/);
    });
  });
});

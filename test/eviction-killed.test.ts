import { mkdirSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agentFlags } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "./support/eviction-plugin.ts";
import { argumentsOf, type ScriptProcess, startScript } from "./support/processes.ts";
import { until } from "./support/until.ts";

let cluster: TestCluster;
let plugin: TestEvictionPlugin;
let agent: ScriptProcess;

beforeEach(async () => {
  cluster = await startCluster();
  const { pluginDirectories } = agentFlags(cluster);
  mkdirSync(pluginDirectories!, { recursive: true });
  plugin = await startEvictionPlugin(pluginDirectories!, "pressure");
});

afterEach(async () => {
  agent.kill("SIGKILL");
  await agent.ended;
  await plugin.stop();
  await cluster.stop();
});

function startAgent(): void {
  agent = startScript("src/main.ts", ["run", ...argumentsOf(agentFlags(cluster))]);
}

async function killAgent(): Promise<void> {
  agent.kill("SIGKILL");
  await agent.ended;
}

const isThere = (name: string) => cluster.server.store.get("pods", name, "default") !== undefined;

it("killed between the decision and the call: the next agent evicts the pod, once", async () => {
  cluster.addPod("web", { spec: { terminationGracePeriodSeconds: 3 } });
  let isKilled = false;
  // The reading before the call comes after the decision was written down.
  cluster.fault = ({ method, path }) => {
    if (isKilled || method !== "GET" || !path.endsWith("/pods/web")) return undefined;
    agent.kill("SIGKILL");
    isKilled = true;
    return "hang";
  };
  plugin.top = pick(["web"]);
  plugin.threshold = { ...hardPressure };
  startAgent();
  await until("the kill", () => isKilled, { explain: agent.output });
  await agent.ended;
  expect(cluster.evictions()).toEqual([]);
  // The pressure is known from the decision alone: the plugin does not come back.
  await plugin.stop();
  startAgent();
  await until("the pod goes", () => !isThere("web"), { explain: agent.output });
  expect(cluster.evictions()).toEqual(["web"]);
});

it("killed between the call and its record: the next agent does not evict again", async () => {
  cluster.addPod("web", { spec: { terminationGracePeriodSeconds: 5 } });
  cluster.admit = ({ method, path }) => {
    if (method === "POST" && path.endsWith("/eviction")) agent.kill("SIGKILL");
    return undefined;
  };
  plugin.top = pick(["web"]);
  plugin.threshold = { ...hardPressure };
  startAgent();
  await until("the call", () => cluster.evictions().length > 0, { explain: agent.output });
  await agent.ended;
  const seen = cluster.requests.length;
  startAgent();
  await until("the next agent looks at the pod", () =>
    cluster.requests.slice(seen).some(({ method, path }) => method === "GET" && path.endsWith("/pods/web")),
  );
  await until("the pod goes", () => !isThere("web"), { explain: agent.output });
  expect(cluster.evictions()).toEqual(["web"]);
});

it("killed again and again while many pods go: none goes twice, none is forgotten", {
  timeout: 60_000,
}, async () => {
  const names = Array.from({ length: 12 }, (_, at) => `pod-${at}`);
  for (const name of names) cluster.addPod(name, { spec: { terminationGracePeriodSeconds: 1 } });
  plugin.evictPods = (_offered, pods) => ({
    evictPods: pods.map((pod) => ({ pod, reason: "all must go", forceEvict: true })),
  });
  for (const calls of [0, 1, 2, 3, 4]) {
    startAgent();
    const before = cluster.evictions().length;
    await until("some are sent", () => cluster.evictions().length > before + Math.min(calls, 2), {
      explain: agent.output,
    });
    await killAgent();
    if (cluster.evictions().length >= names.length) break;
  }
  startAgent();
  await until("all are gone", () => !names.some(isThere), { explain: agent.output, patienceMs: 30_000 });
  const evicted = cluster.evictions();
  expect(new Set(evicted).size).toBe(evicted.length);
  expect(evicted.toSorted()).toEqual(names.toSorted());
});

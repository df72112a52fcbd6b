import { mkdirSync } from "node:fs";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { agentFlags } from "../support/agent.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
  untilNextRounds,
} from "../support/eviction-plugin.ts";
import { explainedPod, statesEviction } from "../support/explained.ts";
import { argumentsOf, type ScriptProcess, startScript } from "../support/processes.ts";
import { isFull } from "../support/sizes.ts";

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
  agent = startScript("packages/agent/src/main.ts", ["run", ...argumentsOf(agentFlags(cluster))]);
}

async function killAgent(): Promise<void> {
  agent.kill("SIGKILL");
  await agent.ended;
}

const isThere = (name: string) => cluster.server.store.get("pods", name, "default") !== undefined;

/** Lets the reading before the call kill the agent: the decision is written down then, and nothing is sent. */
async function killBeforeTheCall(): Promise<void> {
  cluster.addPod("web", { spec: { terminationGracePeriodSeconds: 1 } });
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
}

it("killed between the decision and the call: the next agent decides it again and evicts the pod, once", async () => {
  await killBeforeTheCall();
  startAgent();
  await until("the pod is deleted", () => !isThere("web"), { explain: agent.output });
  expect(cluster.evictions()).toEqual(["web"]);
});

// While it is stopped, not killed: test/eviction-restart.test.ts.
it.runIf(isFull)(
  "killed between the decision and the call: what no plugin asks for any more is not evicted",
  async () => {
    await killBeforeTheCall();
    // The plugin does not come back; another one shows that rounds are complete.
    await plugin.stop();
    plugin = await startEvictionPlugin(agentFlags(cluster).pluginDirectories!, "other");
    cluster.addPod("other");
    startAgent();
    await until("registration", () => plugin.registered === true, { explain: agent.output });
    plugin.top = pick(["other"]);
    plugin.threshold = { ...hardPressure };
    await until("the other pod is deleted", () => !isThere("other"), { explain: agent.output });
    expect(cluster.evictions()).toEqual(["other"]);
  },
);

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
  startAgent();
  await untilNextRounds(plugin);
  await until("the pod goes", () => !isThere("web"), { explain: agent.output });
  expect(cluster.evictions()).toEqual(["web"]);
});

it.runIf(isFull)(
  "killed again and again while many pods are evicted: each is evicted once, and can be explained",
  async () => {
    const names = Array.from({ length: 12 }, (_, at) => `pod-${at}`);
    for (const name of names) cluster.addPod(name, { spec: { terminationGracePeriodSeconds: 1 } });
    plugin.evictPods = (_offered, pods) => ({
      evictPods: pods.map((pod) => ({ pod, reason: "all must go", forceEvict: true })),
    });
    for (const calls of [0, 1, 2, 3, 4]) {
      startAgent();
      const before = cluster.evictions().length;
      // All that are left may be sent before the kill; then there is no further one to wait for.
      const enough = Math.min(before + 1 + Math.min(calls, 2), names.length);
      await until("some are sent", () => cluster.evictions().length >= enough, { explain: agent.output });
      await killAgent();
      if (cluster.evictions().length >= names.length) break;
    }
    startAgent();
    await until("all are deleted", () => !names.some(isThere), { explain: agent.output });
    const evicted = cluster.evictions();
    expect(new Set(evicted).size).toBe(evicted.length);
    expect(evicted.toSorted()).toEqual(names.toSorted());
    for (const name of names) {
      await until(`the record of ${name}`, async () => statesEviction(await explained(name)), {
        explain: () => explained(name),
      });
    }
  },
);

const explained = (name: string) => explainedPod(agentFlags(cluster).stateDir!, `default/${name}`);

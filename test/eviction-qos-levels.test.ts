import { ThresholdMetType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import {
  hardPressure,
  pick,
  startEvictionPlugin,
  type TestEvictionPlugin,
  untilNextRounds,
} from "./support/eviction-plugin.ts";

// A cluster whose pods state their QoS level by annotations of its own, as katalyst's selectors allow.
let cluster: TestCluster;
let agent: RunningAgent;
let plugin: TestEvictionPlugin;

beforeEach(async () => {
  cluster = await startCluster();
});

afterEach(async () => {
  await plugin?.stop();
  await agent?.stop();
  await cluster.stop();
});

const tier = (value: string) => ({ metadata: { annotations: { "example.com/tier": value } } });

it("a QoS level is read from the operator's annotations: for the rank, for protection, and in explain", async () => {
  cluster.addPod("web", { spec: { priority: 0 } });
  cluster.addPod("batch", { ...tier("offline"), spec: { priority: 100 } });
  cluster.addPod("agent", tier("infrastructure"));
  agent = await startAgent(cluster, {
    evictionQosAnnotationsReclaimed: "example.com/tier=offline",
    evictionQosAnnotationsSystem: "example.com/tier=infrastructure",
  });
  plugin = await startEvictionPlugin(agent.pluginDir, "soft");
  await until("registration", () => plugin.registered === true, { explain: () => agent.logLines });
  plugin.top = pick(["agent", "web", "batch"]);
  plugin.threshold = { ...hardPressure, metType: ThresholdMetType.SOFT_MET };
  await until(
    "the reclaimed pod is evicted, though its priority is higher",
    () => cluster.evictions()[0] === "batch",
    {
      explain: () => [cluster.evictions(), agent.logLines],
    },
  );
  await until("the other one after it", () => cluster.evictions().includes("web"));
  await untilNextRounds(plugin);
  expect(new Set(cluster.evictions())).toEqual(new Set(["batch", "web"]));
  expect(plugin.topRequests.flatMap(({ offered }) => offered)).not.toContain("agent");
  const explained = await agent.api("eviction/explain?pod=default/agent");
  expect(explained).toMatchObject({ history: { pod: { qosLevel: "system_cores" } } });
});

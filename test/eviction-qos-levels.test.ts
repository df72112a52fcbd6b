import { ThresholdMetType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { useEvictionNode } from "./support/eviction-node.ts";
import { hardPressure, pick, untilNextRounds } from "./support/eviction-plugin.ts";

// A cluster whose pods state their QoS level by annotations of its own, as katalyst's selectors allow.
const node = useEvictionNode();

const tier = (value: string) => ({ metadata: { annotations: { "example.com/tier": value } } });

it("a QoS level is read from the operator's annotations: for the rank, for protection, and in explain", async () => {
  node.cluster.addPod("web", { spec: { priority: 0 } });
  node.cluster.addPod("batch", { ...tier("offline"), spec: { priority: 100 } });
  node.cluster.addPod("agent", tier("infrastructure"));
  await node.start({
    evictionQosAnnotationsReclaimed: "example.com/tier=offline",
    evictionQosAnnotationsSystem: "example.com/tier=infrastructure",
  });
  const plugin = await node.addPlugin("soft");
  plugin.top = pick(["agent", "web", "batch"]);
  plugin.threshold = { ...hardPressure, metType: ThresholdMetType.SOFT_MET };
  await until(
    "the reclaimed pod is evicted, though its priority is higher",
    () => node.cluster.evictions()[0] === "batch",
    {
      explain: () => [node.cluster.evictions(), node.agent.logLines],
    },
  );
  await until("the other one after it", () => node.cluster.evictions().includes("web"));
  await untilNextRounds(plugin);
  expect(new Set(node.cluster.evictions())).toEqual(new Set(["batch", "web"]));
  expect(plugin.topRequests.flatMap(({ offered }) => offered)).not.toContain("agent");
  const explained = await node.agent.api("eviction/explain?pod=default/agent");
  expect(explained).toMatchObject({ history: { pod: { qosLevel: "system_cores" } } });
});

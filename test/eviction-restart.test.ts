import { SteppedClock } from "@nodekeeper/testing";
import { until } from "@nodekeeper/testing/until";
import { expect, it } from "vitest";
import { startCluster } from "./support/cluster.ts";
import { useEvictionNode } from "./support/eviction-node.ts";
import { hardPressure, pick, type TestEvictionPlugin, untilNextRounds } from "./support/eviction-plugin.ts";

// No decision outlives its reason: what an agent finds in its state file when it starts again.
const THREE_DAYS_MS = 3 * 86_400_000;

const node = useEvictionNode({ clock: () => new SteppedClock() });
let plugin: TestEvictionPlugin;

async function start(): Promise<void> {
  await node.start();
  plugin = await node.addPlugin("pressure");
  plugin.top = pick(["web"]);
}

/** Stops agent and plugin, and starts both again three days later, the plugin without pressure. */
async function startThreeDaysLater(): Promise<void> {
  await plugin.stop();
  await node.agent.stop();
  node.clock.step(THREE_DAYS_MS);
  await start();
}

it("an eviction that was never sent is not sent where no plugin asks for it any more, and that is recorded", async () => {
  node.cluster.addPod("web");
  await start();
  // The reading before the call: nothing is sent.
  let reads = 0;
  node.cluster.fault = ({ method, path }) => {
    if (method !== "GET" || !path.endsWith("/pods/web")) return undefined;
    reads++;
    return "cut";
  };
  plugin.threshold = { ...hardPressure };
  await until("the decision", () => reads > 0, { explain: () => node.agent.logLines });
  await startThreeDaysLater();
  node.cluster.fault = () => undefined;
  await untilNextRounds(plugin);
  expect(node.cluster.evictions()).toEqual([]);
  const page = await node.agent.api("eviction/explain?pod=default/web");
  expect(JSON.stringify(page)).toContain("it was not sent before the agent restarted");

  // Asked for again it is decided again, by the rules of now.
  plugin.threshold = { ...hardPressure };
  await until("the eviction", () => node.cluster.evictions().length > 0, {
    explain: () => node.agent.logLines,
  });
  expect(node.cluster.evictions()).toEqual(["web"]);
});

it("an eviction that was sent is followed, never sent again, and its end is recorded", async () => {
  await node.cluster.stop();
  node.cluster = await startCluster({ removePodsAfterGrace: false });
  const uid = node.cluster.addPod("web");
  await start();
  plugin.threshold = { ...hardPressure };
  await until("the recorded acceptance", async () => {
    const { pending } = await node.agent.api("eviction/budgets");
    return pending.some(({ acceptedAt }: { acceptedAt: number | null }) => acceptedAt !== null);
  });
  await startThreeDaysLater();
  plugin.threshold = { ...hardPressure };
  await untilNextRounds(plugin);
  expect(node.cluster.evictions()).toEqual(["web"]);
  // The kubelet has removed it at last.
  node.cluster.server.store.delete("pods", "web", "default");
  await until("its end in the record", async () =>
    JSON.stringify(await node.agent.api(`eviction/explain?pod=${uid}`)).includes('"result":"terminated"'),
  );
});

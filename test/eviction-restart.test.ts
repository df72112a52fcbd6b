import { SteppedClock } from "@nodekeeper/testing";
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

// No decision outlives its reason: what an agent finds in its state file when it starts again.
const THREE_DAYS_MS = 3 * 86_400_000;

let cluster: TestCluster;
let agent: RunningAgent;
let plugin: TestEvictionPlugin;
let clock: SteppedClock;

beforeEach(async () => {
  cluster = await startCluster();
  clock = new SteppedClock();
});

afterEach(async () => {
  await plugin?.stop();
  await agent?.stop();
  await cluster.stop();
});

async function start(): Promise<void> {
  agent = await startAgent(cluster, {}, undefined, clock);
  plugin = await startEvictionPlugin(agent.pluginDir, "pressure");
  await until("registration", () => plugin.registered === true, { explain: () => agent.logLines });
  plugin.top = pick(["web"]);
}

/** Stops agent and plugin, and starts both again three days later, the plugin without pressure. */
async function startThreeDaysLater(): Promise<void> {
  await plugin.stop();
  await agent.stop();
  clock.step(THREE_DAYS_MS);
  await start();
}

it("an eviction that was never sent is not sent where no plugin asks for it any more, and that is recorded", async () => {
  cluster.addPod("web");
  await start();
  // The reading before the call: nothing is sent.
  let reads = 0;
  cluster.fault = ({ method, path }) => {
    if (method !== "GET" || !path.endsWith("/pods/web")) return undefined;
    reads++;
    return "cut";
  };
  plugin.threshold = { ...hardPressure };
  await until("the decision", () => reads > 0, { explain: () => agent.logLines });
  await startThreeDaysLater();
  cluster.fault = () => undefined;
  await untilNextRounds(plugin);
  expect(cluster.evictions()).toEqual([]);
  const page = await agent.api("eviction/explain?pod=default/web");
  expect(JSON.stringify(page)).toContain("it was not sent before the agent restarted");

  // Asked for again it is decided again, by the rules of now.
  plugin.threshold = { ...hardPressure };
  await until("the eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
  expect(cluster.evictions()).toEqual(["web"]);
});

it("an eviction that was sent is followed, never sent again, and its end is recorded", async () => {
  await cluster.stop();
  cluster = await startCluster({ removePodsAfterGrace: false });
  const uid = cluster.addPod("web");
  await start();
  plugin.threshold = { ...hardPressure };
  await until("the recorded acceptance", async () => {
    const { pending } = await agent.api("eviction/budgets");
    return pending.some(({ acceptedAt }: { acceptedAt: number | null }) => acceptedAt !== null);
  });
  await startThreeDaysLater();
  plugin.threshold = { ...hardPressure };
  await untilNextRounds(plugin);
  expect(cluster.evictions()).toEqual(["web"]);
  // The kubelet has removed it at last.
  cluster.server.store.delete("pods", "web", "default");
  await until("its end in the record", async () =>
    JSON.stringify(await agent.api(`eviction/explain?pod=${uid}`)).includes('"result":"terminated"'),
  );
});

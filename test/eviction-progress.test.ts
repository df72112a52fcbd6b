import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";
import {
  hardPressure,
  pick,
  podNamed,
  startEvictionPlugin,
  type TestEvictionPlugin,
} from "./support/eviction-plugin.ts";

// Issue: while a hard threshold stays met and some pod can be evicted, one is, whatever the plugin names.
let cluster: TestCluster;
let agent: RunningAgent;
let plugin: TestEvictionPlugin;
/** UIDs by name. */
let uids: Record<string, string>;

beforeEach(async () => {
  cluster = await startCluster();
  const owner = (uid: string) => ({
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: uid, uid, controller: true }],
  });
  uids = {
    guarded: cluster.addPod("guarded", { metadata: { labels: { app: "guarded" } } }),
    "web-1": cluster.addPod("web-1", { metadata: owner("web") }),
    "web-2": cluster.addPod("web-2", { metadata: owner("web") }),
    free: cluster.addPod("free"),
  };
  cluster.server.store.put({
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "guard", namespace: "default" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "guarded" } } },
    status: { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 },
  });
  agent = await startAgent(cluster, { evictionLimitsPerOwner: "1", evictionFailedEvictionPause: "1h" });
  plugin = await startEvictionPlugin(agent.pluginDir, "pressure");
  await until("registration", () => plugin.registered === true, { explain: () => agent.logLines });
});

afterEach(async () => {
  await plugin?.stop();
  await agent?.stop();
  await cluster.stop();
});

const order = ["guarded", "web-1", "web-2", "free"];
const podNames = () => cluster.server.store.list("pods").map(({ metadata }) => metadata.name);
const metric = async (name: string) => {
  const line = (await agent.metrics()).split("\n").find((each) => each.startsWith(name));
  return Number(line?.split(" ").at(-1) ?? 0);
};

describe("a hard threshold that stays met, beside a guarded pod and an owner at its limit", () => {
  it("offers its plugin only pods that can be evicted now, and reports the others with their budgets", async () => {
    plugin.top = (offered, pods) =>
      pick(order.filter((name) => offered.includes(name)).slice(0, 1))(offered, pods);
    plugin.threshold = { ...hardPressure };
    await until("all that may be evicted are", () => podNames().sort().join() === "guarded,web-2", {
      explain: () => agent.logLines,
    });
    // The guarded one was tried once; the owner of the web pods has lost as many as it may.
    expect(cluster.evictions()).toEqual(["guarded", "web-1", "free"]);
    const last = plugin.topRequests.at(-1)!;
    expect(last.offered).toEqual(["free"]);
    expect(last.records.find(({ uid }) => uid === uids.guarded)).toMatchObject({
      hasPdb: true,
      disruptionsAllowed: 0,
      currentHealthy: 1,
      desiredHealthy: 1,
    });
    expect(last.records.find(({ uid }) => uid === uids["web-2"])).toMatchObject({
      hasPdb: false,
      buckets: { list: [{ count: 1n }] },
    });

    // No pod is left that could be evicted: the plugin is not asked. That is shown, and recorded once.
    const held = () => metric('nodekeeper_eviction_held_rounds_total{reason="noEligiblePod"}');
    await until("rounds held back", async () => (await held()) > 1);
    expect(plugin.topRequests.at(-1)).toBe(last);
    const rounds = JSON.stringify(await agent.api("eviction/rounds"));
    expect(rounds).toContain("no candidate can be evicted now");
    const before = await held();
    await until("more of them", async () => (await held()) > before + 1);
    expect(JSON.stringify(await agent.api("eviction/rounds"))).toBe(rounds);
  });

  it("evicts another pod in the third round where its plugin names the same pod whatever it is offered", async () => {
    plugin.top = () => ({ targetPods: [podNamed("guarded", uids.guarded!)] });
    plugin.threshold = { ...hardPressure };
    await until("one is evicted all the same", () => cluster.evictions().length > 1, {
      explain: () => agent.logLines,
    });
    plugin.threshold = {};
    expect(cluster.evictions()).toEqual(["guarded", "free"]);
    // The first round tried the guarded pod; in three more the plugin named it again.
    expect(plugin.topRequests).toHaveLength(4);
    const page = await agent.api("eviction/explain?pod=default/free");
    expect(JSON.stringify(page)).toContain('"selectedBy":"ranking"');
  });
});

it("beside more guarded pods than are tried within a pause, the free one is evicted, and their siblings are not tried", async () => {
  const guarded = ["a-1", "a-2", "a-3", "b-1", "c-1"];
  for (const name of guarded) {
    const app = name.slice(0, 1);
    cluster.addPod(name, { metadata: { labels: { app } } });
    cluster.server.store.put({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: app, namespace: "default" },
      spec: { minAvailable: 1, selector: { matchLabels: { app } } },
      status: { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 },
    });
  }
  await plugin.stop();
  await agent.stop();
  // Each is free to be tried again as soon as the next one was tried.
  agent = await startAgent(cluster, { evictionFailedEvictionPause: "1s" });
  plugin = await startEvictionPlugin(agent.pluginDir, "other-pressure");
  const preferred = [...guarded, "free"];
  plugin.top = (offered, pods) => {
    const [first] = preferred.filter((name) => offered.includes(name));
    return first === undefined ? {} : pick([first])(offered, pods);
  };
  plugin.threshold = { ...hardPressure };
  await until("the free pod is evicted", () => !podNames().includes("free"), {
    explain: () => cluster.evictions().join(),
  });
  plugin.threshold = {};
  const tried = cluster.evictions();
  expect(tried.slice(0, tried.indexOf("free"))).toEqual(["a-1", "b-1", "c-1"]);
  const { records } = plugin.topRequests.find(({ offered }) => !offered.includes("a-2"))!;
  expect(records.find(({ uid }) => uid === uidOf("a-2"))).toMatchObject({ hasPdb: true, desiredHealthy: 1 });
});

const uidOf = (podName: string) =>
  cluster.server.store.list("pods").find(({ metadata }) => metadata.name === podName)?.metadata.uid;

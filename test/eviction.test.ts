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
  untilNextRounds,
} from "./support/eviction-plugin.ts";

// The whole agent, with plugins on real sockets, in front of the embedded API server.
let cluster: TestCluster;
let agent: RunningAgent;
let plugins: TestEvictionPlugin[];

beforeEach(async () => {
  cluster = await startCluster();
  plugins = [];
});

afterEach(async () => {
  for (const plugin of plugins) await plugin.stop();
  await agent?.stop();
  await cluster.stop();
});

async function addPlugin(name: string): Promise<TestEvictionPlugin> {
  const plugin = await startEvictionPlugin(agent.pluginDir, name);
  plugins.push(plugin);
  await until("registration", () => plugin.registered === true, { explain: () => agent.logLines });
  return plugin;
}

const podNames = () => cluster.server.store.list("pods").map(({ metadata }) => metadata.name);
const podEvents = (reason: string) =>
  cluster.server.store
    .list("events")
    .filter((event) => event.reason === reason)
    .map((event) => event.message as string);
const metric = async (name: string) => {
  const line = (await agent.metrics()).split("\n").find((each) => each.startsWith(name));
  return Number(line?.split(" ").at(-1));
};

describe("a plugin under pressure", () => {
  it("evicts one pod at a time until the pressure ends, and the pods have Events", async () => {
    for (const name of ["web", "db", "cache"]) cluster.addPod(name);
    agent = await startAgent(cluster);
    const plugin = await addPlugin("pressure");
    plugin.top = pick(["cache", "web", "db"]);
    // The pressure ends with the first eviction.
    cluster.admit = ({ path }) => {
      if (path.endsWith("/eviction")) plugin.threshold = {};
      return undefined;
    };
    plugin.threshold = { ...hardPressure };
    await until("the first one goes", () => !podNames().includes("cache"), { explain: () => agent.logLines });
    expect(cluster.evictions()).toEqual(["cache"]);
    await until("an Event on the pod", () => podEvents("Evicted").length > 0);
    expect(podEvents("Evicted")).toEqual([
      "Evicted by pressure: memory 0.93 > threshold 0.8 (node worker-1)",
    ]);
    expect(podNames()).toEqual(expect.arrayContaining(["web", "db"]));
    await until(
      "confirmation",
      async () => (await metric('nodekeeper_eviction_ended_total{outcome="terminated"}')) === 1,
    );
  });

  it("that names all pods, forced, each round, gets no more than the burst, and never a protected one", async () => {
    const names = Array.from({ length: 12 }, (_, at) => `pod-${String(at).padStart(2, "0")}`);
    for (const name of names) cluster.addPod(name, { spec: { terminationGracePeriodSeconds: 30 } });
    const critical = cluster.addPod("critical", { spec: { priority: 2_000_000_000 } });
    const mirror = cluster.addPod("mirror", {
      metadata: { annotations: { "kubernetes.io/config.mirror": "x" } },
    });
    const controller = { apiVersion: "apps/v1", kind: "DaemonSet", name: "ds", uid: "1", controller: true };
    const daemon = cluster.addPod("daemon", { metadata: { ownerReferences: [controller] } });
    agent = await startAgent(cluster, { evictionBurst: "2" });
    const greedy = await addPlugin("greedy");
    greedy.evictPods = (_offered, pods) => ({
      evictPods: [
        ...pods,
        podNamed("critical", critical),
        podNamed("mirror", mirror),
        podNamed("daemon", daemon),
        podNamed("stranger", "no-such-uid"),
      ].map((pod) => ({
        pod,
        reason: "because",
        forceEvict: true,
        deletionOptions: { gracePeriodSeconds: -5n },
      })),
    });
    await until("three rounds' worth", () => cluster.evictions().length >= 6);
    greedy.evictPods = () => ({});
    const evicted = cluster.evictions();
    expect(new Set(evicted).size).toBe(evicted.length);
    expect(evicted.filter((name) => !names.includes(name))).toEqual([]);
    for (const reason of ["critical", "mirror", "daemonSet", "unknownPod"]) {
      const refusals = `nodekeeper_eviction_refusals_total{reason="${reason}"}`;
      await until(`${reason} is counted`, async () => ((await metric(refusals)) ?? 0) > 0);
    }
    // A negative grace period is not passed on: the pod's own holds.
    const { body } = cluster.requests.find(({ path, body }) => path.endsWith("/eviction") && body)!;
    expect(body).not.toHaveProperty("deleteOptions.gracePeriodSeconds");
  });

  it("in dry run is only recorded", async () => {
    cluster.addPod("web");
    agent = await startAgent(cluster, { evictionDryRunPlugins: "pressure" });
    const plugin = await addPlugin("pressure");
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until(
      "dry-run victims",
      async () => (await metric("nodekeeper_eviction_dry_run_victims_total")) > 1,
    );
    expect(cluster.evictions()).toEqual([]);
  });
});

describe("the API server is unavailable", () => {
  it("while evicting: the eviction is sent once it is back, once", async () => {
    cluster.addPod("web", { spec: { terminationGracePeriodSeconds: 20 } });
    agent = await startAgent(cluster);
    const plugin = await addPlugin("pressure");
    let isAway = true;
    cluster.fault = ({ path, method }) =>
      isAway && (path.endsWith("/eviction") || (method === "GET" && path.endsWith("/pods/web")))
        ? "cut"
        : undefined;
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until("tries", () => cluster.requests.filter(({ path }) => path.endsWith("/pods/web")).length > 1);
    isAway = false;
    await until("it is sent", () => cluster.evictions().length > 0);
    await untilNextRounds(plugin);
    expect(cluster.evictions()).toEqual(["web"]);
  });

  it("a pressure that ends meanwhile withdraws it", async () => {
    cluster.addPod("web");
    agent = await startAgent(cluster);
    const plugin = await addPlugin("pressure");
    cluster.fault = ({ path, method }) =>
      method === "GET" && path.endsWith("/pods/web") ? { status: 503, body: "away" } : undefined;
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until("a try", () => cluster.requests.some(({ path }) => path.endsWith("/pods/web")));
    plugin.threshold = {};
    await until(
      "withdrawal",
      async () => (await metric('nodekeeper_eviction_ended_total{outcome="withdrawn"}')) === 1,
    );
    cluster.fault = () => undefined;
    await untilNextRounds(plugin);
    expect(cluster.evictions()).toEqual([]);
  });
});

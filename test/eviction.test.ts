import { until } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { useEvictionNode } from "./support/eviction-node.ts";
import { hardPressure, pick, podNamed, untilNextRounds } from "./support/eviction-plugin.ts";

// The whole agent, with plugins on real sockets, in front of the embedded API server.
const node = useEvictionNode();

const podNames = () => node.cluster.server.store.list("pods").map(({ metadata }) => metadata.name);
const podEvents = (reason: string) =>
  node.cluster.server.store
    .list("events")
    .filter((event) => event.reason === reason)
    .map((event) => event.message as string);
const metric = async (name: string) => {
  const line = (await node.agent.metrics()).split("\n").find((each) => each.startsWith(name));
  return Number(line?.split(" ").at(-1));
};

describe("a plugin under pressure", () => {
  it("evicts one pod at a time until the pressure ends, and the pods have Events", async () => {
    for (const name of ["web", "db", "cache"]) node.cluster.addPod(name);
    await node.start();
    const plugin = await node.addPlugin("pressure");
    plugin.top = pick(["cache", "web", "db"]);
    // The pressure ends with the first eviction.
    node.cluster.admit = ({ path }) => {
      if (path.endsWith("/eviction")) plugin.threshold = {};
      return undefined;
    };
    plugin.threshold = { ...hardPressure };
    await until("the first one goes", () => !podNames().includes("cache"), {
      explain: () => node.agent.logLines,
    });
    expect(node.cluster.evictions()).toEqual(["cache"]);
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
    for (const name of names) node.cluster.addPod(name, { spec: { terminationGracePeriodSeconds: 30 } });
    const critical = node.cluster.addPod("critical", { spec: { priority: 2_000_000_000 } });
    const mirror = node.cluster.addPod("mirror", {
      metadata: { annotations: { "kubernetes.io/config.mirror": "x" } },
    });
    const controller = { apiVersion: "apps/v1", kind: "DaemonSet", name: "ds", uid: "1", controller: true };
    const daemon = node.cluster.addPod("daemon", { metadata: { ownerReferences: [controller] } });
    await node.start({ evictionBurst: "2" });
    const greedy = await node.addPlugin("greedy");
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
    await until("three rounds' worth", () => node.cluster.evictions().length >= 6);
    greedy.evictPods = () => ({});
    const evicted = node.cluster.evictions();
    expect(new Set(evicted).size).toBe(evicted.length);
    expect(evicted.filter((name) => !names.includes(name))).toEqual([]);
    for (const reason of ["critical", "mirror", "daemonSet", "unknownPod"]) {
      const refusals = `nodekeeper_eviction_refusals_total{reason="${reason}"}`;
      await until(`${reason} is counted`, async () => ((await metric(refusals)) ?? 0) > 0);
    }
    // A negative grace period is not passed on: the pod's own holds.
    const { body } = node.cluster.requests.find(({ path, body }) => path.endsWith("/eviction") && body)!;
    expect(body).not.toHaveProperty("deleteOptions.gracePeriodSeconds");
  });

  it("in dry run is only recorded", async () => {
    node.cluster.addPod("web");
    await node.start({ evictionDryRunPlugins: "pressure" });
    const plugin = await node.addPlugin("pressure");
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until(
      "dry-run victims",
      async () => (await metric("nodekeeper_eviction_dry_run_victims_total")) > 1,
    );
    expect(node.cluster.evictions()).toEqual([]);
  });
});

describe("the API server is unavailable", () => {
  it("while evicting: the eviction is sent once it is back, once", async () => {
    node.cluster.addPod("web", { spec: { terminationGracePeriodSeconds: 20 } });
    await node.start();
    const plugin = await node.addPlugin("pressure");
    let isAway = true;
    node.cluster.fault = ({ path, method }) =>
      isAway && (path.endsWith("/eviction") || (method === "GET" && path.endsWith("/pods/web")))
        ? "cut"
        : undefined;
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until(
      "tries",
      () => node.cluster.requests.filter(({ path }) => path.endsWith("/pods/web")).length > 1,
    );
    isAway = false;
    await until("it is sent", () => node.cluster.evictions().length > 0);
    await untilNextRounds(plugin);
    expect(node.cluster.evictions()).toEqual(["web"]);
  });

  it("a pressure that ends meanwhile withdraws it", async () => {
    node.cluster.addPod("web");
    await node.start();
    const plugin = await node.addPlugin("pressure");
    node.cluster.fault = ({ path, method }) =>
      method === "GET" && path.endsWith("/pods/web") ? { status: 503, body: "away" } : undefined;
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until("a try", () => node.cluster.requests.some(({ path }) => path.endsWith("/pods/web")));
    plugin.threshold = {};
    await until(
      "withdrawal",
      async () => (await metric('nodekeeper_eviction_ended_total{outcome="withdrawn"}')) === 1,
    );
    node.cluster.fault = () => undefined;
    await untilNextRounds(plugin);
    expect(node.cluster.evictions()).toEqual([]);
  });
});

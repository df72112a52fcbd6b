import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConditionType, ThresholdMetType } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { eventually, until } from "@nodekeeper/testing/until";
import { ServerError, Status } from "nice-grpc";
import { describe, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { useEvictionNode } from "./support/eviction-node.ts";
import { hardPressure, pick } from "./support/eviction-plugin.ts";

// What one plugin does, or another client of the API server, is about that plugin, or that pod, alone.
const node = useEvictionNode();

const refuse = (status: Status, details: string) => (): never => {
  throw new ServerError(status, details);
};
const podNames = () => node.cluster.server.store.list("pods").map(({ metadata }) => metadata.name);

const podEvents = (reason: string) =>
  node.cluster.server.store.list("events").filter((event) => event.reason === reason);

it("an admission webhook's 403 is about its pod: the next one is evicted, and no right is missing", async () => {
  const denial = 'admission webhook "leaders.example.com" denied the request: the pod leads';
  node.cluster.addPod("leader");
  node.cluster.addPod("follower");
  await node.start();
  node.cluster.admit = ({ method, path }) =>
    method === "POST" && path.endsWith("/pods/leader/eviction")
      ? { status: 403, body: { kind: "Status", code: 403, reason: "Forbidden", message: denial } }
      : undefined;
  const plugin = await node.addPlugin("pressure");
  plugin.top = (offered, pods) => pick(offered.includes("leader") ? ["leader"] : ["follower"])(offered, pods);
  plugin.threshold = { ...hardPressure };
  await until("the refusal reaches the pod", () => podEvents("EvictionFailed").length > 0);
  expect(podEvents("EvictionFailed")[0]).toMatchObject({
    involvedObject: { name: "leader" },
    message: expect.stringContaining(denial),
  });
  expect((await node.agent.ready()).text).not.toMatch(/EvictionKillerReady failed/);
  plugin.top = pick(["follower"]);
  await until("the other pod is evicted", () => !podNames().includes("follower"));
  expect(podNames()).toContain("leader");
  await eventually(async () =>
    expect(await node.agent.metrics()).toMatch(
      /eviction_kills_total\{killer="evictionApi",result="failed"\} 1/,
    ),
  );
});

it("a pressure whose scope alternates is one pressure: a pod is evicted after the grace period", async () => {
  node.cluster.addPod("web");
  await node.start();
  const plugin = await node.addPlugin("reclaimed");
  let calls = 0;
  Object.defineProperty(plugin, "threshold", {
    get: () => ({
      ...hardPressure,
      evictionScope: calls++ % 2 === 0 ? "reclaimed_millicpu" : "reclaimed_memory",
      gracePeriodSeconds: 2n,
    }),
  });
  plugin.top = pick(["web"]);
  await until("its pod is evicted", () => !podNames().includes("web"), { explain: () => calls });
});

it("soft evicts: one pod a round, the lowest-ranked, and a pod that asked for notice is only notified", async () => {
  for (const [name, priority] of [
    ["low", 0],
    ["high", 100],
  ] as const) {
    node.cluster.addPod(name, { spec: { priority, terminationGracePeriodSeconds: 30 } });
  }
  const annotations = { "katalyst.kubewharf.io/pod_soft_evict_notify": "true" };
  node.cluster.addPod("notified", { metadata: { annotations } });
  await node.start();
  const plugin = await node.addPlugin("soft");
  plugin.top = pick(["notified", "high", "low"]);
  plugin.threshold = { ...hardPressure, metType: ThresholdMetType.SOFT_MET };
  await until("the lowest-ranked one is evicted", () => node.cluster.evictions().length > 0);
  expect(node.cluster.evictions()).toEqual(["low"]);
  await until("notice", () => podEvents("SoftEvictionNotice").length > 0);
  expect(podEvents("SoftEvictionNotice")).toMatchObject([{ involvedObject: { name: "notified" } }]);
  node.cluster.server.store.delete("pods", "low", "default");
  await until("the next one is evicted", () => node.cluster.evictions().includes("high"));
  expect(node.cluster.evictions()).toEqual(["low", "high"]);
});

it("the rank follows the priority whatever the QoS class, as in katalyst, until the file sets another order", async () => {
  const file = join(node.cluster.directory, "config.yaml");
  const ranking = (...keys: string[]) =>
    writeFileSync(
      file,
      `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\neviction: { ranking: [${keys}] }\n`,
    );
  const burstable = [{ name: "app", image: "app", resources: { requests: { cpu: "1" } } }];
  node.cluster.addPod("best-effort-1", { spec: { priority: 100 } });
  node.cluster.addPod("burstable-1", { spec: { containers: burstable } });
  ranking("qosLevel", "priority", "scope");
  await node.start({ evictionCooldown: "0s" }, file);
  const plugin = await node.addPlugin("soft");
  plugin.top = pick(["best-effort-1", "burstable-1"]);
  plugin.threshold = { ...hardPressure, metType: ThresholdMetType.SOFT_MET };
  await until("the pod of the lower priority is evicted", () => node.cluster.evictions().length > 0);
  expect(node.cluster.evictions()).toEqual(["burstable-1"]);
  const explained = async () => (await node.agent.api("eviction/explain?pod=default/best-effort-1")).rounds;
  await eventually(async () =>
    expect(await explained()).toContainEqual(
      expect.objectContaining({
        refusals: [expect.objectContaining({ message: expect.stringContaining(": priority 100 over 0;") })],
      }),
    ),
  );

  plugin.top = () => ({ targetPods: [] });
  node.cluster.addPod("burstable-2", { spec: { containers: burstable } });
  ranking("qosLevel", "qosClass", "priority", "scope");
  await until("the file applies", async () =>
    (await node.agent.api("configuration")).eviction.ranking.includes("qosClass"),
  );
  plugin.top = pick(["best-effort-1", "burstable-2"]);
  await until("the pod of the lower QoS class is evicted", () => node.cluster.evictions().length > 1);
  expect(node.cluster.evictions()).toEqual(["burstable-1", "best-effort-1"]);
});

it("a pod that asked for notice finds it in its file, where the operator set a path", async () => {
  const path = join(node.cluster.directory, "notices");
  const annotations = { "katalyst.kubewharf.io/pod_soft_evict_notify": "true" };
  node.cluster.addPod("notified", { metadata: { annotations } });
  await node.start({ evictionSoftEvictionNotifyPath: path });
  const plugin = await node.addPlugin("soft");
  plugin.top = pick(["notified"]);
  plugin.threshold = { ...hardPressure, metType: ThresholdMetType.SOFT_MET };
  const file = join(path, "notified@@__@@default", "soft_eviction_notify");
  await until("the file", () => /^\d{4}-.* UTC$/.test(readFileSync(file, "utf8")));
  expect(podNames()).toContain("notified");
  node.cluster.server.store.delete("pods", "notified", "default");
  await until("its directory is removed", () => !existsSync(join(path, "notified@@__@@default")));
});

describe("one plugin is one plugin", () => {
  it("that lacks an optional call has nothing to report by it, and the agent is ready", async () => {
    node.cluster.addPod("web");
    await node.start();
    const plugin = await node.addPlugin("partial");
    let asked = 0;
    plugin.evictPods = () => {
      asked++;
      return refuse(Status.UNIMPLEMENTED, "Method not implemented!")();
    };
    plugin.top = pick(["web"]);
    plugin.threshold = { ...hardPressure };
    await until("its pod is evicted", () => !podNames().includes("web"), {
      explain: () => node.agent.logLines,
    });
    await until("the agent is ready", async () => (await node.agent.ready()).status === 200, {
      explain: () => node.agent.ready(),
    });
    const { rounds } = plugin;
    await until("more rounds", () => plugin.rounds > rounds + 2);
    expect(asked).toBe(1);
    await eventually(async () => expect(await node.agent.plugin("partial")).not.toHaveProperty("error"));
    await eventually(async () =>
      expect(await node.agent.metrics()).toMatch(/plugin_call_duration_seconds_count\{plugin="partial"/),
    );
    // A slow machine may miss a call's deadline; what is counted of this plugin is that alone.
    const failures =
      (await node.agent.metrics()).match(/^.*plugin_call_failures_total\{plugin="partial".*$/gm) ?? [];
    expect(failures.filter((line) => !line.includes('code="deadline"'))).toEqual([]);
  });

  it("that lacks both calls of a round is shown as failing", async () => {
    await node.start();
    const plugin = await node.addPlugin("mute");
    plugin.evictPods = refuse(Status.UNIMPLEMENTED, "Method not implemented!");
    Object.defineProperty(plugin, "threshold", {
      get: refuse(Status.UNIMPLEMENTED, "Method not implemented!"),
    });
    await eventually(async () =>
      expect((await node.agent.plugin("mute"))?.error).toBe(
        "the plugin implements neither ThresholdMet nor GetEvictPods",
      ),
    );
  });

  it("that fails is shown as failing, and neither the agent nor another plugin fails with it", async () => {
    node.cluster.addPod("web");
    await node.start();
    const failing = await node.addPlugin("failing");
    const good = await node.addPlugin("good");
    failing.evictPods = refuse(Status.INTERNAL, "disk on fire");
    await until("its failure is shown", async () => (await node.agent.plugin("failing"))?.error);
    good.top = pick(["web"]);
    good.threshold = { ...hardPressure };
    await until("the other plugin's pod is evicted", () => !podNames().includes("web"));
    // On a busy machine an answer can be late, now and then.
    await eventually(async () => {
      const printed: string[] = [];
      const output = { write: (text: string) => void printed.push(text), isTerminal: false, columns: 200 };
      await runCli(["node", "nodekeeper", "plugins", "list", "--server", node.agent.address], output);
      const table = printed.join("");
      expect(table).toMatch(/^failing +EvictionPlugin +failing .*disk on fire/m);
      expect(table).toMatch(/^good +EvictionPlugin +registered /m);
    });
    await until("the agent is ready", async () => (await node.agent.ready()).status === 200, {
      explain: () => node.agent.ready(),
    });
    await eventually(async () =>
      expect(await node.agent.metrics()).toMatch(/plugin_call_failures_total\{plugin="failing".*\} [1-9]/),
    );
  });
});

describe("a condition that the operator does not allow", () => {
  const taints = () =>
    (node.cluster.node().spec?.taints ?? []).map(
      ({ key, effect }: { key: string; effect: string }) => `${key}:${effect}`,
    );
  // Neither hard nor met for long enough: nothing but the condition could act.
  const softAnswer = (conditionName: string, effects: string[]) => ({
    metType: ThresholdMetType.SOFT_MET,
    evictionScope: "memory",
    gracePeriodSeconds: 3_600n,
    condition: {
      conditionType: ConditionType.NODE_CONDITION,
      conditionName,
      effects,
      metCondition: true,
    },
  });

  it("is refused where the operator looks: plugins list, log, metric", async () => {
    await node.start({ evictionConditionTransitionPeriod: "0s" });
    const plugin = await node.addPlugin("pressure");
    const cases: [string, string[], string, RegExp][] = [
      ["Squeeze", ["NoExecute"], "effectNotAllowed", /"NoExecute" is not in eviction.taintEffects/],
      ["Squeeze", ["NoSchedul"], "invalidEffect", /"NoSchedul" is not a taint effect/],
      ["Disk Pressure", ["NoSchedule"], "invalidName", /"Disk Pressure": the name is not valid/],
    ];
    for (const [name, effects, reason, why] of cases) {
      plugin.threshold = softAnswer(name, effects);
      await eventually(async () =>
        expect((await node.agent.plugin("pressure"))?.problems).toEqual([expect.stringMatching(why)]),
      );
      // Once, and once more after a round in which the plugin was too slow to answer.
      const [logged] = node.agent.logLines.filter((line) => line.reason === reason);
      expect(logged).toMatchObject({ plugin: "pressure", message: expect.stringMatching(why) });
      await eventually(async () =>
        expect(await node.agent.metrics()).toContain(
          `nodekeeper_eviction_condition_refusals_total{reason="${reason}"}`,
        ),
      );
      expect(taints()).toEqual([]);
    }
    plugin.threshold = softAnswer("Squeeze", ["NoSchedule"]);
    await until("a proper condition is a taint", () => taints().length === 1);
    await eventually(async () => expect((await node.agent.plugin("pressure"))?.problems).toEqual([]));
  });

  it("is a taint once the operator allows its effect in the file, without a restart", async () => {
    const file = join(node.cluster.directory, "config.yaml");
    const allow = (effects: string) =>
      writeFileSync(
        file,
        `apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\neviction: { taintEffects: [${effects}] }\n`,
      );
    allow("NoSchedule");
    await node.start({}, file);
    const plugin = await node.addPlugin("pressure");
    plugin.threshold = softAnswer("Squeeze", ["NoExecute", "NoSchedule"]);
    await until("the allowed effect", () => taints().length > 0);
    expect(taints()).toEqual(["nodekeeper.dev/Squeeze:NoSchedule"]);
    allow("NoSchedule, NoExecute");
    await until("the other effect", () => taints().includes("nodekeeper.dev/Squeeze:NoExecute"));
  });
});

it("series of a plugin that left are removed from the metrics", async () => {
  node.cluster.addPod("web");
  await node.start();
  const plugin = await node.addPlugin("pressure");
  plugin.top = pick(["web"]);
  plugin.threshold = { ...hardPressure };
  const series = async () =>
    (await node.agent.metrics()).split("\n").filter((line) => line.includes('"pressure"'));
  await eventually(async () =>
    expect(await series()).toContain('nodekeeper_eviction_victims_total{plugin="pressure",kind="forced"} 1'),
  );
  await plugin.stop();
  await eventually(async () => expect(await series()).toEqual([]));
});

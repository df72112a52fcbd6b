import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type EvictionPlugin, serveEvictionPlugin } from "@nodekeeper/sdk";
import { SteppedClock } from "@nodekeeper/testing";
import { eventually, until } from "@nodekeeper/testing/until";
import { ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../packages/agent/src/cli/index.ts";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { NODE, startCluster, type TestCluster } from "./support/cluster.ts";
import {
  hardPressure,
  pick,
  podNamed,
  startEvictionPlugin,
  type TestEvictionPlugin,
  untilNextRounds,
} from "./support/eviction-plugin.ts";

// Issue: the agent acts on an answer to the question it asked, in the round it asked it, from the instance it asked.
let cluster: TestCluster;
let agent: RunningAgent;
let plugin: TestEvictionPlugin | undefined;
let other: EvictionPlugin | undefined;

beforeEach(async () => {
  cluster = await startCluster();
});

afterEach(async () => {
  await plugin?.stop();
  await other?.stop();
  plugin = undefined;
  other = undefined;
  await agent?.stop();
  await cluster.stop();
});

async function addPlugin(name: string): Promise<TestEvictionPlugin> {
  const added = await startEvictionPlugin(agent.pluginDir, name);
  plugin = added;
  await until("registration", () => added.registered === true, { explain: () => agent.logLines });
  return added;
}

/** A plugin that holds a round in ThresholdMet, until it is opened. */
async function addGate(): Promise<{ asked: Promise<void>; open: () => void }> {
  const asked = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const gate = serveEvictionPlugin({
    name: "gate",
    socketDir: agent.pluginDir,
    async thresholdMet() {
      asked.resolve();
      await opened.promise;
      return { metType: "none" as const };
    },
    getTopEvictionPods: () => [],
  });
  other = gate;
  await until("registration", () => gate.registration.state === "registered");
  return { asked: asked.promise, open: opened.resolve };
}

async function explain(pod: string): Promise<string> {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const args = ["explain", "pod", `default/${pod}`, "--server", agent.address];
  const output = { write, isTerminal: false, columns: 120 };
  expect(await runCli(["node", "nodekeeper", ...args], output)).toBe(0);
  return text;
}

const metric = async (name: string) => {
  const line = (await agent.metrics()).split("\n").find((each) => each.startsWith(name));
  return Number(line?.split(" ").at(-1) ?? 0);
};
const failedCalls = (code = "") =>
  metric(
    `nodekeeper_eviction_plugin_call_failures_total{plugin="pressure",method="GetTopEvictionPods",code="${code}`,
  );

describe("a failed call is no vote", () => {
  it("of a plugin that is late once and then answers within 0.7 s, naming a pod: no other pod is evicted", async () => {
    cluster.addPod("innocent");
    cluster.addPod("guilty", { spec: { priority: 10 } });
    agent = await startAgent(cluster, { evictionSyncPeriod: "3s" });
    const pressure = await addPlugin("pressure");
    let isFirst = true;
    pressure.top = async (offered, pods) => {
      const wait = delay(isFirst ? 6_000 : 700);
      isFirst = false;
      await wait;
      return pick(["guilty"])(offered, pods);
    };
    pressure.threshold = { ...hardPressure };
    await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
    pressure.threshold = {};
    expect(cluster.evictions()).toEqual(["guilty"]);
    expect(await failedCalls("deadline")).toBe(1);
    const rounds = JSON.stringify(await agent.api("eviction/rounds"));
    expect(rounds).toContain("late: GetTopEvictionPods of pressure: deadline of 3 s exceeded");
  });

  it("of a plugin whose ranking always fails: no pod is evicted, however many rounds", async () => {
    for (const name of ["a", "b", "c"]) cluster.addPod(name);
    agent = await startAgent(cluster);
    const pressure = await addPlugin("pressure");
    pressure.top = () => {
      throw new ServerError(Status.INTERNAL, "no ranking");
    };
    pressure.threshold = { ...hardPressure };
    await until("failed calls", async () => (await failedCalls()) >= 5, {
      explain: () => agent.logLines,
    });
    expect(cluster.evictions()).toEqual([]);
  });
});

describe("the fallback stays within what the plugin asked for", () => {
  const names = ["a", "b"];
  async function namingStrangers(scope: string, flags: Record<string, string> = {}) {
    for (const name of names) cluster.addPod(name);
    agent = await startAgent(cluster, flags);
    const pressure = await addPlugin("pressure");
    pressure.top = () => ({ targetPods: [podNamed("b", "the-uid-before")] });
    pressure.threshold = { ...hardPressure, evictionScope: scope };
    return pressure;
  }

  it("of a whole node: the ranking selects a pod in the third round, and the first line names it", async () => {
    const pressure = await namingStrangers("memory");
    await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
    pressure.threshold = {};
    expect(cluster.evictions()).toEqual(["a"]);
    expect(pressure.topRequests).toHaveLength(3);
    await eventually(async () => {
      const first = (await explain("a")).split("\n").find((line) => line.startsWith("Evicted"));
      expect(first).toContain(
        ": selected by Nodekeeper's ranking: pressure named only pods that can't be evicted in 3 rounds in a row; memory 0.93 > threshold 0.8.",
      );
    });
    expect(await explain("a")).not.toContain("requested by pressure");
  });

  it("is shown with the other UID if the plugin names the selected pod by it", async () => {
    const pressure = await namingStrangers("memory");
    pressure.top = () => ({ targetPods: [podNamed("a", "the-uid-before")] });
    await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
    pressure.threshold = {};
    const explanation = JSON.stringify(await agent.api("eviction/explain?pod=default/a"));
    expect(explanation).toContain("pressure named a pod of this name with another UID, the-uid-before");
  });

  it.each<[string, string, Record<string, string>]>([
    ["of a NUMA node, whose pods the agent does not know", "NumaMemory", {}],
    ["of a disk", "disk-nvme1", {}],
    ["of a plugin for which it is off", "memory", { evictionFallbackPlugins: "*,-pressure" }],
  ])("%s: no pod is evicted, and the reason is recorded", async (_name, scope, flags) => {
    const pressure = await namingStrangers(scope, flags);
    await until("requests", () => pressure.topRequests.length >= 5, { explain: () => agent.logLines });
    expect(cluster.evictions()).toEqual([]);
    const rounds = JSON.stringify(await agent.api("eviction/rounds"));
    expect(rounds).toContain("named 1 pod, none can be evicted now");
  });
});

describe("a round is one snapshot", () => {
  it("of policies: a file that changes between two calls evicts no pod that neither version would have evicted", async () => {
    cluster.addPod("innocent");
    const hostRoot = join(cluster.directory, "host");
    cpSync(join(import.meta.dirname, "fixtures/host/one-socket-v2"), hostRoot, { recursive: true });
    const file = join(cluster.directory, "policies.yaml");
    const policyOf = (threshold: string, pods: string) =>
      writeFileSync(
        file,
        `policies: [{ name: swapped, type: hard, observed: node.memory.total, operator: greaterThan, threshold: "${threshold}", pods: "${pods}", rank: [-pod.priority] }]\n`,
      );
    // Is met, and may select no pod.
    policyOf("1.0", "false");
    const clock = new SteppedClock();
    const flags = {
      evictionSyncPeriod: "5m",
      evictionCallTimeout: "1m",
      hostRoot,
      evictionPoliciesFiles: file,
    };
    agent = await startAgent(cluster, flags, undefined, clock);
    const rounds = () => metric('nodekeeper_eviction_rounds_total{result="done"}');
    await until("the first round", async () => (await rounds()) > 0, { explain: () => agent.logLines });
    const gate = await addGate();
    const before = await rounds();
    other?.requestRound("a round that is held between two calls");
    await gate.asked;
    // Is never met, and could select each pod.
    policyOf("1e30", "true");
    const loads = () => agent.logLines.filter(({ msg }) => msg === "eviction policies loaded").length;
    clock.advance(10_000);
    await until("the changed policy", () => loads() > 1, { explain: () => agent.logLines });
    gate.open();
    await until("the end of the round", async () => (await rounds()) > before);
    // The next round asks the changed one.
    other?.requestRound("another round");
    await until("the next round", async () => (await rounds()) > before + 1);
    const { rounds: readings } = await agent.api("eviction/readings");
    expect(readings.at(-1).readings).toContainEqual(
      expect.objectContaining({ plugin: "policy-swapped", met: "none" }),
    );
    expect(cluster.evictions()).toEqual([]);
  });

  it("of settings: an in-tree plugin selects a pod with those of the round's start, though the file changes meanwhile", async () => {
    const annotations = { "katalyst.kubewharf.io/qos_level": "reclaimed_cores" };
    const uid = cluster.addPod("large", { metadata: { annotations } });
    const hostRoot = join(cluster.directory, "host");
    cpSync(join(import.meta.dirname, "fixtures/host/one-socket-v2"), hostRoot, { recursive: true });
    const slice = `sys/fs/cgroup/kubepods.slice/kubepods-pod${uid.replaceAll("-", "_")}.slice`;
    mkdirSync(join(hostRoot, slice), { recursive: true });
    writeFileSync(join(hostRoot, slice, "memory.current"), `${2 ** 31}\n`);
    writeFileSync(join(hostRoot, slice, "memory.stat"), `anon ${2 ** 31}\ninactive_file 0\n`);
    const file = join(cluster.directory, "config.yaml");
    const configure = (grace: string) => {
      const settings = `{ freeMinimum: 1Gi, gracePeriod: ${grace}, reclaimedGracePeriod: ${grace} }`;
      const kind = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";
      writeFileSync(`${file}.new`, `${kind}eviction: { systemMemory: ${settings} }\n`);
      renameSync(`${file}.new`, file);
    };
    configure("40s");
    const inTree = { evictionInTreePlugins: "system-memory-pressure-eviction-plugin" };
    const flags = { evictionSyncPeriod: "5m", evictionCallTimeout: "1m", hostRoot, ...inTree };
    agent = await startAgent(cluster, flags, file);
    const rounds = () => metric('nodekeeper_eviction_rounds_total{result="done"}');
    await until("the first round", async () => (await rounds()) > 0, { explain: () => agent.logLines });
    const gate = await addGate();
    const meminfo = join(hostRoot, "proc/meminfo");
    const short = readFileSync(meminfo, "utf8").replace(/^MemFree: +\d+ kB$/m, "MemFree: 500000 kB");
    writeFileSync(`${meminfo}.new`, short);
    renameSync(`${meminfo}.new`, meminfo);
    await gate.asked;
    configure("90s");
    const current = async () => (await agent.api("configuration")).eviction.systemMemory.gracePeriod;
    await until("the changed settings", async () => (await current()) === 90_000);
    gate.open();
    const evicted = () => cluster.requests.find(({ path, body }) => path.endsWith("/large/eviction") && body);
    await until("an eviction", () => evicted() !== undefined, { explain: () => agent.logLines });
    expect(evicted()?.body).toMatchObject({ deleteOptions: { gracePeriodSeconds: 40 } });
  });

  it("of instances: what an instance answered that is replaced before the round ends does not count", async () => {
    cluster.addPod("web");
    agent = await startAgent(cluster, { evictionSyncPeriod: "5m" });
    const rounds = () => metric('nodekeeper_eviction_rounds_total{result="done"}');
    await until("the first round", async () => (await rounds()) > 0, { explain: () => agent.logLines });
    const pressure = await addPlugin("pressure");
    const gate = await addGate();
    pressure.evictPods = (_offered, pods) => ({
      evictPods: pods.map((pod) => ({ pod, reason: "of the first instance", forceEvict: true })),
    });
    const before = await rounds();
    other?.requestRound("a round that is held");
    await gate.asked;
    await until("the other plugin's answers", () => pressure.rounds > 0);
    await pressure.stop();
    await until("its end", () => agent.logLines.some(({ errorId }) => errorId === "NK1609"), {
      explain: () => agent.logLines,
    });
    gate.open();
    await until("the round", async () => (await rounds()) > before);
    // Its evictions would be sent by the end of the next one.
    other?.requestRound("another round");
    await until("the next round", async () => (await rounds()) > before + 1);
    expect(cluster.evictions()).toEqual([]);
  });
});

it("calls of one plugin are made one after the other, GetEvictPods first", async () => {
  agent = await startAgent(cluster);
  const calls: string[] = [];
  const pressure = await addPlugin("pressure");
  pressure.evictPods = async () => {
    calls.push("GetEvictPods starts");
    await delay(20);
    calls.push("GetEvictPods ends");
    return {};
  };
  Object.defineProperty(pressure, "threshold", {
    get: () => {
      calls.push("ThresholdMet");
      return {};
    },
  });
  await untilNextRounds(pressure);
  const from = calls.indexOf("GetEvictPods starts");
  expect(calls.slice(from, from + 3)).toEqual(["GetEvictPods starts", "GetEvictPods ends", "ThresholdMet"]);
});

describe("while a hard threshold is met and no pod may be selected for it", () => {
  interface Condition {
    type: string;
    status: string;
    reason: string;
    message: string;
  }
  const conditions = (): Condition[] => cluster.node()?.status?.conditions ?? [];
  const blocked = () => conditions().find(({ type }) => type === "EvictionBlocked");
  const writes = () =>
    cluster.requests.filter(
      ({ method, path }) => method === "PATCH" && path.endsWith(`/nodes/${NODE}/status`),
    );
  const reported = () =>
    cluster.server.store.list("events").filter(({ reason }) => reason === "EvictionBlocked");
  let clock: SteppedClock;

  beforeEach(() => {
    clock = new SteppedClock();
    const node = structuredClone(cluster.node());
    node.status = { ...node.status, conditions: [{ type: "Ready", status: "True" }] };
    cluster.server.store.put(node);
    cluster.addPod("web");
  });

  async function failing(flags: Record<string, string> = {}): Promise<TestEvictionPlugin> {
    agent = await startAgent(cluster, flags, undefined, clock);
    const pressure = await addPlugin("pressure");
    pressure.top = () => {
      throw new ServerError(Status.INTERNAL, "no ranking");
    };
    pressure.threshold = { ...hardPressure };
    const unserved = () => metric('nodekeeper_eviction_unserved_rounds_total{reason="failed"}');
    await until("rounds", async () => (await unserved()) >= 2, { explain: () => agent.logLines });
    return pressure;
  }

  it("health and metric have the reason at once; after a minute the Node's condition and an Event, until it is over", async () => {
    const pressure = await failing();
    await eventually(async () =>
      expect(await agent.ready()).toMatchObject({
        status: 200,
        text: expect.stringMatching(
          /EvictionVictimsFound ok, but: pressure: memory > 0.8 is met and no pod may be selected since .*: the call for pods failed: no ranking/,
        ),
      }),
    );
    expect(blocked()).toBeUndefined();
    expect(reported()).toEqual([]);
    clock.advance(61_000);
    await until("the condition", () => blocked()?.status === "True", { explain: () => agent.logLines });
    expect(blocked()).toMatchObject({ reason: "PluginFailed" });
    expect(blocked()?.message).toMatch(/^pressure: memory > 0.8 is met and no pod may be selected since /);
    expect(conditions().map(({ type }) => type)).toContain("Ready");
    await until("the Event", () => reported().length > 0);
    expect(reported()).toMatchObject([
      { type: "Warning", involvedObject: { kind: "Node", name: NODE }, count: 1 },
    ]);
    const { length } = writes();
    await untilNextRounds(pressure);
    expect(writes()).toHaveLength(length);

    // Another client removes it.
    const node = structuredClone(cluster.node());
    node.status.conditions = [{ type: "Ready", status: "True" }];
    cluster.server.store.put(node);
    await until("the condition again", () => blocked()?.status === "True");
    expect(reported()).toMatchObject([{ count: 1 }]);

    pressure.top = pick(["web"]);
    await until("its end", () => blocked()?.status === "False", { explain: () => agent.logLines });
    expect(blocked()).toMatchObject({ reason: "EvictionPossible" });
    await until("the eviction", () => cluster.evictions().length > 0);
    expect(cluster.evictions()).toEqual(["web"]);
  });

  it.each([
    ["in dry run", "*"],
    ["of a plugin in dry run", "pressure"],
  ])("%s the Node is left as it is", async (_name, evictionDryRunPlugins) => {
    const pressure = await failing({ evictionDryRunPlugins });
    clock.advance(61_000);
    await untilNextRounds(pressure);
    await untilNextRounds(pressure);
    expect((await agent.ready()).text).toContain("EvictionVictimsFound ok, but: pressure");
    expect(blocked()).toBeUndefined();
    expect(writes()).toEqual([]);
    expect(reported()).toEqual([]);
  });

  it("a missing right to evict is the same condition, at once", async () => {
    agent = await startAgent(cluster, {}, undefined, clock);
    const message =
      'pods "web" is forbidden: User "system:serviceaccount:nodekeeper:nodekeeper" cannot create resource "pods/eviction"';
    cluster.admit = ({ method, path }) =>
      method === "POST" && path.endsWith("/eviction")
        ? { status: 403, body: { kind: "Status", code: 403, reason: "Forbidden", message } }
        : undefined;
    const pressure = await addPlugin("pressure");
    pressure.top = pick(["web"]);
    pressure.threshold = { ...hardPressure };
    await until("the condition", () => blocked()?.status === "True", { explain: () => agent.logLines });
    expect(blocked()).toMatchObject({
      reason: "MissingRight",
      message: expect.stringContaining("pods/eviction"),
    });
  });
});

import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EvictionPlugin, serveEvictionPlugin } from "@nodekeeper/sdk";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

// The whole agent, whose next regular round is five minutes away: what is evicted before is evicted out of turn.
const flags = { evictionSyncPeriod: "5m", hostRoot: "" };
const reclaimed = { metadata: { annotations: { "katalyst.kubewharf.io/qos_level": "reclaimed_cores" } } };

let cluster: TestCluster;
let agent: RunningAgent;
let plugin: EvictionPlugin | undefined;

beforeEach(async () => {
  cluster = await startCluster();
  flags.hostRoot = join(cluster.directory, "host");
  cpSync(join(import.meta.dirname, "fixtures/host/one-socket-v2"), flags.hostRoot, { recursive: true });
});

afterEach(async () => {
  await plugin?.stop();
  plugin = undefined;
  await agent?.stop();
  await cluster.stop();
});

const metric = async (name: string) => {
  const line = (await agent.metrics()).split("\n").find((each) => each.startsWith(name));
  return Number(line?.split(" ").at(-1) ?? 0);
};
const roundsDone = () => metric('nodekeeper_eviction_rounds_total{result="done"}');
const outOfTurn = (name: string) => metric(`nodekeeper_eviction_rounds_out_of_turn_total{plugin="${name}"}`);

async function start(more: Record<string, string>, file?: string): Promise<void> {
  agent = await startAgent(cluster, { ...flags, ...more }, file);
  await until("the first round", async () => (await roundsDone()) > 0, { explain: () => agent.logLines });
}

/** Changes figures of /proc/meminfo at once, as the kernel does. */
function setMemory(figures: Record<string, number>): void {
  const path = join(flags.hostRoot, "proc/meminfo");
  let text = readFileSync(path, "utf8");
  for (const [name, kibibytes] of Object.entries(figures)) {
    text = text.replace(new RegExp(`^${name}: +\\d+ kB$`, "m"), `${name}: ${kibibytes} kB`);
  }
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

/** Gives a pod a cgroup, whose memory the agent reads. */
function setPodMemory(uid: string, bytes: number): void {
  const slice = `sys/fs/cgroup/kubepods.slice/kubepods-pod${uid.replaceAll("-", "_")}.slice`;
  const directory = join(flags.hostRoot, slice);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "memory.current"), `${bytes}\n`);
  writeFileSync(join(directory, "memory.stat"), `anon ${bytes}\ninactive_file 0\n`);
}

it("an in-tree plugin evicts as soon as free memory is short", async () => {
  setPodMemory(cluster.addPod("small", reclaimed), 2 ** 30);
  setPodMemory(cluster.addPod("large", reclaimed), 2 ** 31);
  const name = "system-memory-pressure-eviction-plugin";
  const file = join(cluster.directory, "config.yaml");
  const kind = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";
  writeFileSync(file, `${kind}eviction: { systemMemory: { freeMinimum: 1Gi } }\n`);
  await start({ evictionInTreePlugins: name }, file);
  expect(cluster.evictions()).toEqual([]);
  setMemory({ MemFree: 500_000 });
  await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
  expect(cluster.evictions()).toEqual(["large"]);
  await until("its count", async () => (await outOfTurn(name)) === 1);
});

it("a policy evicts as soon as the machine stalls", async () => {
  cluster.addPod("cheap", { spec: { priority: 1 } });
  cluster.addPod("dear", { spec: { priority: 9 } });
  const file = join(cluster.directory, "policies.yaml");
  const expressions = "observed: node.psi.memory.some.avg10, operator: greaterThan, threshold: 50";
  writeFileSync(
    file,
    `policies: [{ name: stalled, type: hard, ${expressions}, scope: stalls, rank: [-pod.priority] }]\n`,
  );
  await start({ evictionPoliciesFiles: file });
  await until("the policy", async () => (await metric("nodekeeper_eviction_plugins ")) > 0);
  const path = join(flags.hostRoot, "proc/pressure/memory");
  const stalled = readFileSync(path, "utf8").replace(/avg10=[\d.]+/, "avg10=80.00");
  writeFileSync(`${path}.new`, stalled);
  renameSync(`${path}.new`, path);
  await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
  expect(cluster.evictions()).toEqual(["cheap"]);
});

it("a plugin behind a socket evicts as soon as it requests a round", async () => {
  cluster.addPod("web");
  let isFull = false;
  await start({});
  plugin = serveEvictionPlugin({
    name: "disk",
    socketDir: agent.pluginDir,
    thresholdMet: () => ({ metType: isFull ? "hard" : "none", scope: "disk" }),
    getTopEvictionPods: (pods) => pods,
  });
  await until("registration", () => plugin?.registration.state === "registered");
  isFull = true;
  plugin.requestRound("disk is full");
  await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
  expect(cluster.evictions()).toEqual(["web"]);
  await until("its count", async () => (await outOfTurn("disk")) === 1);
});

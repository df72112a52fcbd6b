import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type RunningAgent, startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

// The whole agent on a made-up machine, with in-tree plugins that are off unless named.
let cluster: TestCluster;
let agent: RunningAgent;
let hostRoot: string;

beforeEach(async () => {
  cluster = await startCluster();
  hostRoot = join(cluster.directory, "host");
  cpSync(join(import.meta.dirname, "fixtures/host/one-socket-v2"), hostRoot, { recursive: true });
});

afterEach(async () => {
  await agent?.stop();
  await cluster.stop();
});

async function start(inTreePlugins: string, settings: string): Promise<void> {
  const file = join(cluster.directory, "config.yaml");
  const kind = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";
  writeFileSync(file, `${kind}eviction: { ${settings} }\n`);
  agent = await startAgent(cluster, { hostRoot, evictionInTreePlugins: inTreePlugins }, file);
}

/** Gives a pod a cgroup with so many processes. */
function setProcesses(uid: string, pids: number): void {
  const slice = `sys/fs/cgroup/kubepods.slice/kubepods-pod${uid.replaceAll("-", "_")}.slice`;
  const directory = join(hostRoot, slice);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "memory.current"), "4096\n");
  writeFileSync(join(directory, "pids.current"), `${pids}\n`);
  writeFileSync(join(directory, "cpu.stat"), "usage_usec 1\n");
}

it("a pod with more processes than it may have is evicted, and others stay", async () => {
  setProcesses(cluster.addPod("forks"), 5_000);
  setProcesses(cluster.addPod("calm"), 50);
  await start("pid-overuse-eviction-plugin", "pidOveruse: { threshold: 1000 }");
  await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
  const isDeleted = () =>
    !cluster.server.store.list("pods").some(({ metadata }) => metadata.name === "forks");
  await until("its deletion", isDeleted, { explain: () => agent.logLines });
  expect(new Set(cluster.evictions())).toEqual(new Set(["forks"]));
});

it("a policy evicts the pod with most processes when process numbers run out", async () => {
  setProcesses(cluster.addPod("forks"), 5_000);
  setProcesses(cluster.addPod("calm"), 50);
  writeFileSync(join(hostRoot, "proc/sys/kernel/pid_max"), "2500\n");
  const signals = join(import.meta.dirname, "../deploy/policies/kubelet-signals.yaml");
  await start("-rss-overuse-eviction-plugin", `policies: { files: [${signals}], enabled: [pid-available] }`);
  await until("an eviction", () => cluster.evictions().length > 0, { explain: () => agent.logLines });
  expect(cluster.evictions()).toEqual(["forks"]);
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createDevApiServer } from "@nodekeeper/testing";
import { defaultInTreeEvictionSettings } from "../packages/agent/src/assembly/testing/defaults.ts";
import {
  createEvictionMetrics,
  EvictionPlugins,
  type EvictionSource,
  ThresholdSampler,
} from "../packages/agent/src/eviction/index.ts";
import { Host, HostReadings, PodReadings } from "../packages/agent/src/host/index.ts";
import { createInTreeEvictionMetrics, inTreeEvictionSources } from "../packages/agent/src/intree/index.ts";
import { PodDisks, PodMemories } from "../packages/agent/src/pod-usage/index.ts";
import {
  createPolicyMetrics,
  loadPolicies,
  type Policy,
  PolicySource,
} from "../packages/agent/src/policy/index.ts";
import { AgentProcess } from "./agent-process.ts";
import { benchPod } from "./eviction-pods.ts";
import { type Figure, percentile } from "./figures.ts";
import { writeMachine } from "./host.ts";

const NODE = "bench";
const PODS = 110;
const PLUGINS = 8;
const CALM = 16_000_000;
const SHORT = 500_000;

/** From a threshold that is crossed between rounds to the request that evicts a pod, by the whole agent. */
export async function benchOutOfTurn(quick: boolean): Promise<Figure[]> {
  const crossings = quick ? 5 : 150;
  const agent = new AgentProcess();
  const host = join(agent.directory, "host");
  let evictedAt: PromiseWithResolvers<number> | undefined;
  const server = createDevApiServer({
    checkFields: false,
    clock: systemClock,
    log: silentLogger,
    removePodsAfterGrace: true,
    faults: ({ method, path }) => {
      if (method === "POST" && path.endsWith("/eviction")) evictedAt?.resolve(performance.now());
      return undefined;
    },
  });
  await server.start();
  const script = fileURLToPath(new URL("./eviction-plugins-process.ts", import.meta.url));
  const child = spawn(process.execPath, [script, agent.plugins, String(PLUGINS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    await once(child.stdout, "data");
    server.seedNode(NODE);
    await server.writeKubeconfig(agent.kubeconfig);
    await writeMachine(host, "v2");
    setAvailable(host, CALM);
    const addPod = (at: number) => {
      // Without an owner and by one name each: limits are not what is measured.
      const pod = benchPod(at, NODE);
      const metadata = { ...pod.metadata, ownerReferences: [] };
      const spec = { ...(pod.spec as object), terminationGracePeriodSeconds: 1 };
      const { uid } = server.store.put({ ...pod, metadata, spec }).metadata;
      writePodMemory(host, uid!, (at + 1) * 2 ** 20);
    };
    for (let at = 0; at < PODS; at++) addPod(at);
    const policies = join(agent.directory, "policies.yaml");
    writeFileSync(policies, memoryPolicy);
    const config = join(agent.directory, "config.yaml");
    writeFileSync(config, configuration);
    await agent.start({ config, "host-root": host, "eviction-policies-files": policies });
    await systemClock.sleep(12_000);

    const delays: number[] = [];
    for (let crossing = 0; crossing < crossings; crossing++) {
      // At any time between two samples, and between two rounds; long enough for the agent to learn that the last victim
      // was deleted, because until then the same pressure takes no other.
      await systemClock.sleep(1_000 + Math.random() * 1_000);
      evictedAt = Promise.withResolvers<number>();
      const startedAt = performance.now();
      setAvailable(host, SHORT);
      delays.push((await evictedAt.promise) - startedAt);
      setAvailable(host, CALM);
      while (server.store.list("pods").length === PODS) await systemClock.sleep(20);
      addPod(PODS + crossing);
    }
    const what = `threshold crossed to eviction request, ${PODS} pods, ${PLUGINS} plugins`;
    return [
      { name: `${what}, p50`, value: percentile(delays, 0.5), unit: "ms" },
      { name: `${what}, p99`, value: percentile(delays, 0.99), unit: "ms", budget: 500 },
      { name: `${what}, max`, value: Math.max(...delays), unit: "ms" },
    ];
  } finally {
    child.kill("SIGKILL");
    await agent.remove();
    await server.stop();
  }
}

/**
 * Measures the CPU time of sampling with all in-tree plugins that sample and the shipped policies, on this machine and
 * on files as long as those of a machine with 64 CPUs. Also measures waking up four times a second without sampling:
 * this is the machine's own cost, and much of the total if it is busy with other work.
 */
export async function benchSampling(quick: boolean): Promise<Figure[]> {
  const root = await mkdtemp(join(tmpdir(), "bench-sampling-"));
  try {
    await writeMachine(root, "v2");
    return [
      ...(await samplingShare("this machine", "/", quick)),
      ...(await samplingShare("two NUMA nodes, 64 CPUs (made up)", root, quick)),
    ];
  } finally {
    await rm(root, { recursive: true });
  }
}

async function samplingShare(what: string, root: string, quick: boolean): Promise<Figure[]> {
  const host = new Host({ root });
  await host.nodeMemory();
  const sources = await sampledSources(host, root);
  // Turn by turn, so that other work on the machine slows both.
  const alone: number[] = [];
  const sampled: number[] = [];
  for (let turn = 0; turn < (quick ? 1 : 8); turn++) {
    alone.push(await ownCpu(host, []));
    sampled.push(await ownCpu(host, sources));
  }
  const value = percentile(sampled, 0.5) - percentile(alone, 0.5);
  const plugins = pluginsOf(sources);
  const before = process.cpuUsage();
  for (let sample = 0; sample < 1_000; sample++) plugins.newlyCrossed(host.sample());
  const { user, system } = process.cpuUsage(before);
  return [
    { name: `one sample of many, ${what}: own CPU`, value: (user + system) / 1_000, unit: "µs" },
    { name: `sampling, ${what}: own CPU`, value, unit: "% of one", budget: 0.2 },
    { name: `waking up alone: own CPU`, value: percentile(alone, 0.5), unit: "% of one" },
  ];
}

/** Percent of one core that a sampler takes in five seconds. */
async function ownCpu(host: Host, inTree: EvictionSource[]): Promise<number> {
  const plugins = pluginsOf(inTree);
  const sampler = new ThresholdSampler({
    host,
    plugins,
    pacing: { request: () => {} },
    settings,
    clock: systemClock,
  });
  const stop = new AbortController();
  const running = sampler.run(stop.signal);
  await systemClock.sleep(1_000);
  const before = process.cpuUsage();
  await systemClock.sleep(5_000);
  const { user, system } = process.cpuUsage(before);
  stop.abort();
  await running;
  return ((user + system) / 5e6) * 100;
}

const settings = () => ({ callTimeout: 1_000, syncPeriod: 5_000, outOfTurnRounds: true });

function pluginsOf(inTree: EvictionSource[]): EvictionPlugins {
  return new EvictionPlugins({
    inTree,
    settings,
    tokenCheck: () => undefined,
    metrics: createEvictionMetrics(new Registry()),
    clock: systemClock,
    log: silentLogger,
  });
}

async function sampledSources(host: Host, root: string): Promise<EvictionSource[]> {
  const registry = new Registry();
  const common = { clock: systemClock, log: silentLogger };
  const readings = new HostReadings({
    host,
    pods: new PodReadings({ root }),
    clock: systemClock,
    maxAgeMs: () => 0,
  });
  const parts = {
    readings,
    memories: new PodMemories({ readings, runtimeStats: undefined, clock: systemClock }),
    disks: new PodDisks({ runtimeStats: undefined, clock: systemClock }),
    rootfsPath: async () => "/",
    allocatable: () => ({ state: "missing", at: 0, message: "" }) as const,
    roundPeriodMs: () => 5_000,
    metrics: createInTreeEvictionMetrics(registry),
    ...common,
  };
  const policies: Policy[] = [];
  for (const file of ["kubelet-signals.yaml", "psi.yaml"]) {
    const text = await readFile(new URL(`../deploy/policies/${file}`, import.meta.url), "utf8");
    policies.push(...(await loadPolicies(file, text)).policies);
  }
  const policyParts = {
    readings: { read: () => Promise.reject(new Error("rounds read; samples do not")) },
    podUsage: async () => ({ missing: "is not read" }),
    cpuMs: () => 0,
    metrics: createPolicyMetrics(registry),
    ...common,
  };
  return [
    ...inTreeEvictionSources(["*"], parts, () => defaultInTreeEvictionSettings),
    ...policies.map((policy) => new PolicySource({ ...policyParts, policy })),
  ];
}

function setAvailable(host: string, kibibytes: number): void {
  const path = join(host, "proc/meminfo");
  const figures = { MemTotal: 32_000_000, MemFree: kibibytes, MemAvailable: kibibytes, "Inactive(file)": 0 };
  const others = Array.from({ length: 46 }, (_, at) => `Other${at}: 98317364 kB\n`);
  const lines = Object.entries(figures).map(([name, value]) => `${name}: ${value} kB\n`);
  writeFileSync(`${path}.new`, [...lines, ...others].join(""));
  renameSync(`${path}.new`, path);
}

function writePodMemory(host: string, uid: string, bytes: number): void {
  const slice = `sys/fs/cgroup/kubepods.slice/kubepods-pod${uid.replaceAll("-", "_")}.slice`;
  mkdirSync(join(host, slice), { recursive: true });
  writeFileSync(join(host, slice, "memory.current"), `${bytes}\n`);
  writeFileSync(join(host, slice, "memory.stat"), `anon ${bytes}\ninactive_file 0\n`);
}

const memoryPolicy = `policies:
  - name: memory
    type: hard
    observed: node.memory.available
    operator: lessThan
    threshold: quantity("1Gi")
    rank: [-pod.priority, pod.usage.workingSet]
`;

// With the period that is the default, and no limit in the way of an eviction each second.
const configuration = `apiVersion: nodekeeper.dev/v1alpha1
kind: AgentConfiguration
eviction:
  dryRunPlugins: []
  cooldown: 0s
  limits: { perNode: 0, perOwner: 0 }
`;

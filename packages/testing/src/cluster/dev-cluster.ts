import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  type Logger,
  messageOf,
  NodekeeperError,
  runInOrder,
  silentLogger,
  stopped,
  systemClock,
} from "@nodekeeper/core/lib";
import { createDevApiServer, type DevApiServer } from "../apiserver/dev-api-server.ts";
import { thisMachine } from "../apiserver/machine.ts";
import type { Workload } from "../kubelet/workload-keeper.ts";
import { SimulatedCri } from "../runtime/cri-server.ts";
import { SimulatedRuntime } from "../runtime/simulated-runtime.ts";
import { eventually } from "../until.ts";
import { startAgentProcess } from "./agent-process.ts";
import { simulatedNode } from "./simulated-node.ts";

/** Settings by section, as in the configuration file: `{ eviction: { syncPeriod: "1s" } }`. */
export interface AgentSettings {
  readonly [name: string]: AgentSettings | string | number | boolean | readonly unknown[];
}

export interface DevClusterOptions {
  /** Default "node-1". */
  nodeName?: string;
  /** Pods that run on the node and are recreated when they terminate. Default: none. */
  workloads?: readonly Workload[];
  /**
   * Settings of the agent (see docs/configuration.md of the package `nodekeeper`). Merged into those of the cluster:
   * live eviction, rounds every second, no cooldown, no limits, and no in-tree plugins. Only the plugins under test
   * therefore have an effect.
   */
  settings?: AgentSettings;
  /** Path of the agent's program. Default: the command of the installed package `nodekeeper`. */
  agentScript?: string;
  /** Logger of all components except the agent. Default: logs are discarded. */
  log?: Logger;
}

/** A node with an agent in a separate cluster. */
export interface DevCluster extends AsyncDisposable {
  readonly nodeName: string;
  /** Directory for the registration sockets of plugins: `socketDir` of the SDK. */
  readonly pluginDirectory: string;
  /** Path of the kubeconfig for kubectl and other clients. */
  readonly kubeconfig: string;
  /** Its `store` shows what the agent publishes and evicts. */
  readonly apiServer: DevApiServer;
  readonly runtime: SimulatedRuntime;
  /** Socket of the agent's gRPC API: `PodLifecycleClient` of the SDK. */
  readonly apiSocket: string;
  /** "host:port" of the agent's status server: `nodekeeper explain … --server`. */
  readonly address: string;
  /** Lines of the agent's JSON log. */
  readonly agentLog: readonly string[];
  /** Reads a path of the agent's JSON API, such as "plugins". Throws `unavailable` if the request is not successful. */
  agentApi<T = unknown>(page: string): Promise<T>;
  /** Stops all components and removes the cluster's files. Idempotent. */
  stop(): Promise<void>;
}

const STOP_DEADLINE_MS = 5_000;

const clusterSettings: AgentSettings = {
  apiVersion: "nodekeeper.dev/v1alpha1",
  kind: "AgentConfiguration",
  plugins: { rescanInterval: "1s", livenessInterval: "1s", endpointDirectories: [] },
  reporting: { collectInterval: "1s", minWriteInterval: "50ms", inTreePlugins: [] },
  eviction: {
    // Eviction is live. The agent's default is dry run.
    dryRunPlugins: [],
    syncPeriod: "1s",
    cooldown: "0s",
    inTreePlugins: [],
    limits: { perNode: 0, perOwner: 0 },
    grace: { shortest: "0s" },
  },
};

/**
 * Starts an in-memory API server, a simulated container runtime and kubelet, and the agent in a separate process.
 * Resolves when the agent is ready. Uses a temporary directory, loopback and free ports, so that clusters do not affect
 * each other. Throws `notFound` if the package `nodekeeper` is not installed, and `unavailable` if the agent exits.
 */
export async function startDevCluster(options: DevClusterOptions = {}): Promise<DevCluster> {
  const { nodeName = "node-1", workloads = [], settings = {}, log = silentLogger } = options;
  const agentScript = options.agentScript ?? installedAgent();
  await using started = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "nk-dev-"));
  started.defer(() => rmSync(directory, { recursive: true, force: true }));
  const at = (name: string) => join(directory, name);
  const [pluginDirectory, kubeconfig, apiSocket] = [at("plugins"), at("kubeconfig"), at("api.sock")];
  mkdirSync(pluginDirectory, { mode: 0o700 });

  // The simulated kubelet terminates pods.
  const apiServer = createDevApiServer({ clock: systemClock, log, removePodsAfterGrace: false });
  started.defer(() => apiServer.stop());
  await apiServer.start();
  const machine = thisMachine();
  apiServer.seedNode(nodeName, machine);
  await apiServer.writeKubeconfig(kubeconfig);

  const runtime = new SimulatedRuntime({ clock: systemClock });
  const cri = new SimulatedCri({ runtime, socket: at("cri.sock"), clock: systemClock });
  started.defer(() => cri.stop());
  await cri.start();
  started.defer(
    await runningNode({ runtime, kubeconfig, nodeName, workloads, hostIP: machine.address, log }),
  );

  writeFileSync(at("configuration.yaml"), JSON.stringify(merged(clusterSettings, settings)));
  const flags = {
    config: at("configuration.yaml"),
    "node-name": nodeName,
    kubeconfig,
    "state-dir": at("state"),
    "plugin-directories": pluginDirectory,
    "runtime-endpoint": cri.socket,
    "api-socket": apiSocket,
    "server-address": "127.0.0.1:0",
    "log-level": "info",
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const agent = startAgentProcess(agentScript, args, systemClock);
  started.defer(() => agent.stop());
  const address = await agent.listening;
  await Promise.race([
    eventually(() => read(address, "readyz")),
    agent.exited.then((how) => {
      throw new NodekeeperError("unavailable", `the agent exited (${how}): ${agent.log.at(-1)}`);
    }),
  ]);

  const parts = started.move();
  const stop = () => parts.disposeAsync();
  return {
    nodeName,
    pluginDirectory,
    kubeconfig,
    apiServer,
    runtime,
    apiSocket,
    address,
    agentLog: agent.log,
    agentApi: async <T>(page: string) => JSON.parse(await read(address, `api/v1/${page}`)) as T,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Runs the simulated node. Returns a function that stops it and throws the error of a component that failed. */
async function runningNode(options: Parameters<typeof simulatedNode>[0]): Promise<() => Promise<void>> {
  const stop = new AbortController();
  const order = { clock: systemClock, log: options.log, stopDeadlineMs: STOP_DEADLINE_MS };
  const running = runInOrder(await simulatedNode(options), order, stop.signal);
  running.catch(() => {});
  return async () => {
    stop.abort(stopped("the cluster stops"));
    await running;
  };
}

async function read(address: string, path: string): Promise<string> {
  const response = await fetch(`http://${address}/${path}`);
  const body = await response.text();
  if (response.ok) return body;
  throw new NodekeeperError("unavailable", `/${path}: ${response.status}: ${body}`);
}

function merged(base: AgentSettings, over: AgentSettings): AgentSettings {
  const sections = Object.entries(over).map(([name, value]) => {
    const below = base[name];
    return [name, isSection(below) && isSection(value) ? merged(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(sections) };
}

function isSection(value: AgentSettings[string] | undefined): value is AgentSettings {
  return typeof value === "object" && !Array.isArray(value);
}

function installedAgent(): string {
  try {
    const manifest = createRequire(import.meta.url).resolve("nodekeeper/package.json");
    const { bin } = JSON.parse(readFileSync(manifest, "utf8")) as { bin: { nodekeeper: string } };
    return join(dirname(manifest), bin.nodekeeper);
  } catch (error) {
    const hint = "install it beside @nodekeeper/testing: npm install --save-dev nodekeeper";
    throw new NodekeeperError("notFound", `package nodekeeper (${messageOf(error)}); ${hint}`, {
      cause: error,
    });
  }
}

import { createWriteStream, existsSync, rmSync, type WriteStream } from "node:fs";
import {
  createLogger,
  type Logger,
  type LogLevel,
  NodekeeperError,
  type Runnable,
  runInOrder,
  systemClock,
  untilAborted,
} from "@nodekeeper/core/lib";
import {
  createDevApiServer,
  DeviceClaims,
  DevPodResources,
  type DevStore,
  SimulatedCri,
  SimulatedRuntime,
  simulatedNode,
  thisMachine,
} from "@nodekeeper/testing";
import { type Agent, createAgent } from "../agent.ts";
import { loadConfiguration } from "../config/index.ts";
import { ChildProcess } from "./child-process.ts";
import { createDevPaths, type DevOptions, type DevPaths } from "./dev-paths.ts";
import { claimTemplates, deviceWorkloads, KEEP_LABEL, sampleWorkloads } from "./dev-pods.ts";
import { printDevSummary, type SamplePlugins } from "./dev-text.ts";
import { LiveLine } from "./live-line.ts";
import type { Output } from "./output.ts";
import { pageFiles } from "./page-files.ts";
import { onHangup } from "./run.ts";
import { stopOnSignals } from "./stop-on-signals.ts";
import { packageVersion } from "./version.ts";

const STOP_DEADLINE_MS = 4_500;

/** `nodekeeper dev`: runs an in-memory API server, the agent, and sample plugins in child processes, until Ctrl-C. */
export async function devCommand(options: DevOptions, output: Output): Promise<void> {
  using scope = stopOnSignals();
  const { signal } = scope;
  const paths = createDevPaths(options.dataDir);
  const level = checkLevel(options.logLevel);
  const logFile = options.verbose ? undefined : createWriteStream(paths.log, { flags: "a", mode: 0o600 });
  const log = createLogger(level, logFile);
  const apiServer = createDevApiServer({
    clock: systemClock,
    log: log.child({ logger: "devcluster" }),
    port: checkPort(options.apiPort),
    // With a simulated runtime, the simulated kubelet terminates pods.
    removePodsAfterGrace: !options.simulatedRuntime,
    ...(options.dataDir ? { dataDir: paths.directory } : {}),
  });
  try {
    // Servers that start before their part runs. If a signal arrives first, the part never runs and cannot stop them.
    await using serving = new AsyncDisposableStack();
    const { url } = await apiServer.start();
    if (!apiServer.store.list("nodes").some(({ metadata }) => metadata.name === options.nodeName)) {
      apiServer.seedNode(options.nodeName, thisMachine());
    }
    await apiServer.writeKubeconfig(paths.kubeconfig);
    const simulated = options.simulatedRuntime
      ? await startSimulated(options, paths, { log, serving, store: apiServer.store })
      : [];
    const agent = options.agent ? await makeAgent(options, paths, log, (to) => (log.level = to)) : undefined;
    const samples = options.plugin ? samplePlugins(options, paths, log) : undefined;
    const parts: Runnable[] = [
      stoppedOnAbort("API server", apiServer),
      ...simulated,
      ...(agent ? [agent] : []),
      ...Object.values(samples ?? {}),
      summaryPart(async () => {
        const address = await agent?.listening();
        printDevSummary({ options, paths, url, address, samples, output });
        if (agent && !options.verbose) return new LiveLine(output, systemClock, () => agent.summary());
      }),
    ];
    await runInOrder(parts, { clock: systemClock, log, stopDeadlineMs: STOP_DEADLINE_MS }, signal);
    output.write("Stopped.\n");
  } finally {
    await apiServer.stop();
    if (logFile) await endOf(logFile);
    if (paths.isTemporary) rmSync(paths.directory, { recursive: true, force: true });
  }
}

/** Closes the log. Later writes, by parts abandoned at the deadline, are dropped. */
function endOf(logFile: WriteStream): Promise<void> {
  return new Promise((resolve) => {
    logFile.on("error", () => resolve());
    logFile.end(resolve);
  });
}

/** The last part, because it prints the process IDs of the earlier ones. */
function summaryPart(print: () => Promise<LiveLine | undefined>): Runnable {
  return {
    name: "summary",
    async run(signal) {
      const live = await print();
      live?.start();
      await untilAborted(signal);
      live?.stop();
    },
  };
}

async function makeAgent(
  options: DevOptions,
  paths: DevPaths,
  log: Logger,
  setLogLevel: (level: LogLevel) => void,
): Promise<Agent> {
  const sources = { flags: agentFlags(options, paths), env: {}, hostname: options.nodeName };
  const { configuration } = await loadConfiguration(sources);
  return createAgent({
    configuration,
    sources,
    version: packageVersion(),
    page: pageFiles(),
    clock: systemClock,
    log,
    setLogLevel,
    onHangup,
  });
}

function agentFlags(options: DevOptions, paths: DevPaths): Record<string, string> {
  return {
    nodeName: options.nodeName,
    kubeconfig: paths.kubeconfig,
    stateDir: paths.state,
    pluginDirectories: paths.plugins,
    apiSocket: paths.api,
    evictionSkipLabels: KEEP_LABEL,
    // The demonstration is live, as printed by dev-text.ts: it has few pods and evicts one within seconds.
    evictionDryRunPlugins: "",
    evictionCooldown: "0s",
    evictionLimitsPerNode: "0",
    evictionLimitsPerOwner: "0",
    evictionGraceShortest: "0s",
    // Pods are simulated, so their RSS cannot be read.
    evictionInTreePlugins: "-rss-overuse-eviction-plugin",
    ...(options.simulatedRuntime
      ? simulatedNodeFlags(paths)
      : { reportingInTreePlugins: "system-reporter-plugin" }),
    serverAddress: options.server ?? "127.0.0.1:0",
    logLevel: options.logLevel,
  };
}

function simulatedNodeFlags(paths: DevPaths): Record<string, string> {
  return {
    runtimeEndpoint: paths.runtime,
    reportingInTreePlugins: "system-reporter-plugin,kubelet-reporter-plugin",
    reportingKubeletPodResourcesSocket: paths.podResources,
    // The simulated kubelet has no configuration file.
    reportingKubeletConfigFile: "",
    devicesKubeletPluginEnabled: "true",
    devicesKubeletPluginRegistryDirectory: paths.registry,
    devicesKubeletPluginCdiDirectory: paths.cdi,
  };
}

/** Resolves when the simulated runtime is serving. The returned runnables run the API server's pods in it. */
async function startSimulated(
  { nodeName, plugin }: DevOptions,
  { runtime: socket, kubeconfig, registry, podResources }: DevPaths,
  { log, serving, store }: { log: Logger; serving: AsyncDisposableStack; store: DevStore },
): Promise<Runnable[]> {
  const runtime = new SimulatedRuntime({ clock: systemClock });
  const server = new SimulatedCri({ runtime, socket, clock: systemClock });
  await server.start();
  serving.defer(() => server.stop());
  const node = await simulatedNode({
    runtime,
    kubeconfig,
    nodeName,
    workloads: [...sampleWorkloads, ...(plugin ? deviceWorkloads : [])],
    hostIP: thisMachine().address,
    log: log.child({ logger: "devcluster" }),
  });
  const claims = new DeviceClaims({
    store,
    nodeName,
    registryDirectory: registry,
    templates: claimTemplates,
    clock: systemClock,
    log: log.child({ logger: "devcluster" }),
  });
  return [
    stoppedOnAbort("simulated runtime", server),
    new DevPodResources(podResources, () => claims.podResources()),
    ...node,
    claims,
  ];
}

function samplePlugins({ firstPressure }: DevOptions, { plugins }: DevPaths, log: Logger): SamplePlugins {
  const isSource = import.meta.url.endsWith(".ts");
  const sample = (name: string, ...more: string[]) => {
    const path = isSource ? `../../../../examples/${name}/main.ts` : `./example-${name}.js`;
    const script = new URL(path, import.meta.url);
    const args = ["--socket-dir", plugins, "--exit-with-parent", ...more];
    return new ChildProcess({ name: `sample ${name}`, script, args, clock: systemClock, log });
  };
  return {
    reporter: sample("reporter"),
    driver: sample("driver", "--numa-nodes", numaNodes()),
    eviction: sample("eviction", "--first-pressure", checkFirstPressure(firstPressure)),
  };
}

// The sample driver places its devices on NUMA nodes that exist.
function numaNodes(): string {
  return existsSync("/sys/devices/system/node/node1") ? "2" : "1";
}

/** A server that is already running. */
function stoppedOnAbort(name: string, server: { stop(): Promise<void> }): Runnable {
  return {
    name,
    async run(signal) {
      await untilAborted(signal);
      await server.stop();
    },
  };
}

function checkLevel(level: string): LogLevel {
  const known = ["debug", "info", "warn", "error"] as const;
  const found = known.find((each) => each === level);
  if (!found)
    throw new NodekeeperError("invalid", `--log-level must be one of ${known.join(", ")}; got "${level}"`);
  return found;
}

function checkPort(text: string | undefined): number {
  const port = Number(text ?? 0);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new NodekeeperError("invalid", `--api-port must be 0 to 65535; got "${text}"`);
}

function checkFirstPressure(text: string): string {
  if (/^\d{1,4}s$/.test(text)) return text;
  throw new NodekeeperError("invalid", `--first-pressure must be 0s to 9999s; got "${text}"`);
}

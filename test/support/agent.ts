import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Clock, createLogger, stopped, systemClock } from "@nodekeeper/core/lib";
import { until } from "@nodekeeper/testing/until";
import { createAgent } from "../../packages/agent/src/agent.ts";
import { pageFiles } from "../../packages/agent/src/cli/page-files.ts";
import { loadConfiguration } from "../../packages/agent/src/config/index.ts";
import { NODE, type TestCluster } from "./cluster.ts";

/** A row of /api/v1/plugins, as far as tests look at it. */
export interface PluginRow {
  name: string;
  state: string;
  registrationSocket?: string;
  problems: string[];
  driverProblems?: object[];
  error?: string;
  contentBytes: number;
}

/**
 * Short intervals and no in-tree plugins. Timeouts are long: a test that is about one sets it, for a peer that never
 * answers. By `Setting.optionKey`, as on the command line.
 */
export function agentFlags(cluster: TestCluster): Record<string, string> {
  return {
    nodeName: NODE,
    kubeconfig: cluster.kubeconfig,
    stateDir: join(cluster.directory, "state"),
    pluginDirectories: join(cluster.directory, "plugins"),
    serverAddress: "127.0.0.1:0",
    apiSocket: join(cluster.directory, "agent.sock"),
    lifecycle: "false",
    kubeApiQps: "200",
    kubeApiBurst: "200",
    kubeApiRequestTimeout: "30s",
    pluginRescanInterval: "1s",
    pluginLivenessInterval: "1s",
    pluginInfoTimeout: "30s",
    pluginNotifyTimeout: "30s",
    reportingCollectInterval: "1s",
    reportingCallTimeout: "30s",
    reportingMinWriteInterval: "50ms",
    reportingInTreePlugins: "-system-reporter-plugin",
    evictionSyncPeriod: "1s",
    // No plugin: eviction is live. A test about dry run sets it.
    evictionDryRunPlugins: ",",
    evictionCooldown: "0s",
    evictionLimitsPerNode: "0",
    evictionLimitsPerOwner: "0",
    evictionGraceShortest: "0s",
    evictionCallTimeout: "30s",
    // Only what a test brings along.
    evictionInTreePlugins: "-rss-overuse-eviction-plugin",
  };
}

/** How the agent's status server is read. */
export interface StatusReader {
  // biome-ignore lint/suspicious/noExplicitAny: tests read into documents of every shape
  api(path: string): Promise<any>;
  plugins(): Promise<PluginRow[]>;
  plugin(name: string): Promise<PluginRow | undefined>;
  ready(): Promise<{ status: number; text: string }>;
  metrics(): Promise<string>;
}

/** How long the agent waits for plugins from before its start, whatever the grace period is. */
export const TIME_TO_RETURN_MS = 10_000;

/** An agent in this process. */
export interface RunningAgent extends StatusReader {
  /** "host:port" of its status server. */
  address: string;
  pluginDir: string;
  stateDir: string;
  /** Parsed lines of its log. */
  // biome-ignore lint/suspicious/noExplicitAny: log lines have any fields
  logLines: any[];
  stop(): Promise<void>;
}

/** Runs the real agent in this process against the cluster. `flags` override `agentFlags`. */
export async function startAgent(
  cluster: TestCluster,
  flags: Record<string, string> = {},
  file?: string,
  clock: Clock = systemClock,
): Promise<RunningAgent> {
  const all = { ...agentFlags(cluster), ...flags };
  // A flag that is given as "" leaves the setting to the file.
  const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
  const pluginDir = all.pluginDirectories!;
  mkdirSync(pluginDir, { recursive: true });
  const sources = { flags: given, env: {}, hostname: NODE, ...(file ? { file } : {}) };
  const { configuration } = await loadConfiguration(sources);
  const logLines: RunningAgent["logLines"] = [];
  const log = createLogger(configuration.log.level, { write: (line) => logLines.push(JSON.parse(line)) });
  const controller = new AbortController();
  const agent = await createAgent({
    configuration,
    sources,
    version: "0.0.0-test",
    page: pageFiles(),
    clock,
    log,
    setLogLevel: (level) => {
      log.level = level;
    },
    onHangup: () => () => {},
  });
  const running = agent.run(controller.signal);
  running.catch(() => {});
  const address = await Promise.race([agent.listening(), running.then(() => "the agent ended")]);
  return {
    address,
    pluginDir,
    stateDir: all.stateDir!,
    logLines,
    ...statusReader(address),
    async stop() {
      controller.abort(stopped("test is over"));
      await running;
    },
  };
}

export function statusReader(address: string): StatusReader {
  const get = (path: string) => fetch(`http://${address}${path}`);
  const reader: StatusReader = {
    api: async (path) => (await get(`/api/v1/${path}`)).json(),
    plugins: () => reader.api("plugins"),
    plugin: async (name) => (await reader.plugins()).find((row) => row.name === name),
    async ready() {
      const answer = await get("/readyz?verbose");
      return { status: answer.status, text: await answer.text() };
    },
    metrics: async () => (await get("/metrics")).text(),
  };
  return reader;
}

/** Waits until the CNR shows this value for a plugin's widget. */
export async function untilWidgets(
  cluster: TestCluster,
  name: string,
  value: number | string,
): Promise<void> {
  await until(`widgets ${name} = ${value}`, () => cluster.widgets(name) === String(value), {
    explain: () => cluster.cnr()?.status,
  });
}

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createAgent } from "../packages/agent/src/agent.ts";
import { loadConfiguration } from "../packages/agent/src/config/index.ts";
import { createLogger, Registry, systemClock } from "../packages/core/src/lib/index.ts";
import { tableOf, withSections } from "./docs/tables.ts";
import { withTemporaryDirectory } from "./programs.ts";

interface Metric {
  name: string;
  help: string;
  type: string;
  labelNames: readonly string[];
}

const titles: Record<string, string> = {
  archive: "Archive",
  claims: "Claims",
  config: "Configuration",
  devices: "Devices",
  eviction: "Eviction",
  intree: "In-tree plugins",
  kube: "API server",
  lifecycle: "Lifecycle",
  plugins: "Plugins",
  policy: "Policies",
  reporting: "Reporting",
  runtime: "Container runtime",
  server: "Status server and local API",
  state: "State database",
  workqueue: "Work queues",
};

/** docs/metrics.md with what an agent registers that is put together with every part on, and not run. */
export async function metricsPage(page: string): Promise<string> {
  const metrics = await declaredMetrics();
  const groups = Map.groupBy(metrics, ({ name }) => titles[/^nodekeeper_([a-z]+)_/.exec(name)?.[1] ?? ""]);
  const sorted = [...groups].sort(([a], [b]) => compare(a ?? "~", b ?? "~"));
  const sections = sorted.map(([title, group]) => {
    const rows = group.map(({ name, type, labelNames, help }) => [
      `\`${name}\``,
      type,
      labelNames.map((label) => `\`${label}\``).join(", "),
      help,
    ]);
    return `## ${title ?? "Process"}\n\n${tableOf(["metric", "type", "labels", "meaning"], rows)}\n`;
  });
  return withSections(page, sections);
}

// No request is sent: the API server's address leads nowhere.
function declaredMetrics(): Promise<Metric[]> {
  return withTemporaryDirectory(async (directory) => {
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, JSON.stringify(nowhere));
    const flags = {
      nodeName: "node",
      kubeconfig,
      stateDir: join(directory, "state"),
      runtimeEndpoint: "unix:///nowhere.sock",
      archiveEndpoint: "http://127.0.0.1:1",
      devicesKubeletPluginEnabled: "true",
      evictionSoftEvictionNotifyPath: join(directory, "notices"),
    };
    const sources = { flags, env: {}, hostname: "node" };
    const { configuration } = await loadConfiguration(sources);
    const registry = new Registry();
    const log = createLogger("error");
    const nothing = { setLogLevel: () => {}, onHangup: () => () => {} };
    await createAgent({
      configuration,
      sources,
      version: "0",
      clock: systemClock,
      log,
      registry,
      ...nothing,
    });
    const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]));
    const found = registry.getMetricsAsArray() as unknown as Omit<Metric, "type">[];
    return found
      .map(({ name, help, labelNames }) => ({ name, help, labelNames, type: types.get(name)! }))
      .sort((a, b) => compare(a.name, b.name));
  });
}

const nowhere = {
  ...{ apiVersion: "v1", kind: "Config", "current-context": "nowhere" },
  contexts: [{ name: "nowhere", context: { cluster: "nowhere", user: "nowhere" } }],
  clusters: [{ name: "nowhere", cluster: { server: "http://127.0.0.1:1" } }],
  users: [{ name: "nowhere", user: { token: "none" } }],
};

function compare(a: string, b: string): number {
  return a < b ? -1 : 1;
}

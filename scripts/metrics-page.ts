// docs/metrics.md: what the agent registers when every part is on.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAgent } from "../packages/agent/src/agent.ts";
import { loadConfiguration } from "../packages/agent/src/config/index.ts";
import { createLogger, Registry, systemClock } from "../packages/core/src/lib/index.ts";

/** Where the page is. */
export const METRICS_PAGE = "docs/metrics.md";

interface Metric {
  name: string;
  help: string;
  type: string;
  labels: string[];
}

const head = `# Metrics

<!-- Generated from the metrics that the agent registers by "npm run generate". -->

At \`/metrics\` of the status server ([operating.md](operating.md#health)), in the text format of Prometheus, or in
OpenMetrics where \`Accept\` prefers it. All names start with \`nodekeeper_\` and the module, but for those of the process, which
are the ones that client libraries of Prometheus share.
Metrics of a part that is off are absent; a metric with labels appears with its first value. Durations are in seconds, sizes
in bytes. No label holds the name of a pod.
`;

const titles: Record<string, string> = {
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

/** The text of the page, from an agent that is put together and not run. */
export async function metricsPage(): Promise<string> {
  const metrics = await declaredMetrics();
  const groups = Map.groupBy(metrics, ({ name }) => titles[/^nodekeeper_([a-z]+)_/.exec(name)?.[1] ?? ""]);
  const sections = [...groups.keys()].sort((a, b) => compare(a ?? "~", b ?? "~"));
  const texts = sections.map((title) => {
    const rows = groups
      .get(title)!
      .map(
        ({ name, type, labels, help }) =>
          `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help.replaceAll("|", "\\|")} |`,
      );
    return `\n## ${title ?? "Process"}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n${rows.join("\n")}\n`;
  });
  return head + texts.join("");
}

// No request is sent: the API server's address leads nowhere.
async function declaredMetrics(): Promise<Metric[]> {
  const directory = await mkdtemp(join(tmpdir(), "nodekeeper-metrics-"));
  try {
    const kubeconfig = join(directory, "kubeconfig");
    await writeFile(kubeconfig, JSON.stringify(nowhere));
    const flags = {
      ...{ nodeName: "node", kubeconfig, stateDir: join(directory, "state") },
      ...{
        runtimeEndpoint: "unix:///nowhere.sock",
        devicesKubeletPluginEnabled: "true",
        evictionSoftEvictionNotifyPath: join(directory, "notices"),
      },
    };
    const sources = { flags, env: {}, hostname: "node" };
    const { configuration } = await loadConfiguration(sources);
    const registry = new Registry();
    const log = createLogger("error");
    const version = "0";
    const nothing = { setLogLevel: () => {}, onHangup: () => () => {} };
    await createAgent({ configuration, sources, version, clock: systemClock, log, registry, ...nothing });
    const found = registry.getMetricsAsArray() as unknown as {
      name: string;
      help: string;
      labelNames: string[];
    }[];
    const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]));
    return found
      .map(({ name, help, labelNames }) => ({ name, help, type: types.get(name)!, labels: [...labelNames] }))
      .sort((a, b) => compare(a.name, b.name));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
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

// The Grafana dashboard of the chart, made of a table of panels: deploy/helm/nodekeeper/files/dashboard.json
/** Where the file is. */
export const DASHBOARD = "deploy/helm/nodekeeper/files/dashboard.json";

/** Grafana's names of units. */
type Unit = "short" | "s" | "bytes" | "ops" | "percentunit" | "cps";

interface Panel {
  title: string;
  /** PromQL; `$node` is the chosen nodes. */
  queries: readonly { expression: string; legend: string }[];
  unit?: Unit;
  /** A single number in place of a graph. */
  isStat?: true;
}

const at = 'node=~"$node"';
const one = (expression: string, legend: string) => [{ expression, legend }];
const p99 = (metric: string) =>
  one(
    `histogram_quantile(0.99, sum by (le, node) (rate(${metric}_bucket{${at}}[$__rate_interval])))`,
    "{{node}}",
  );

const rows: readonly { title: string; panels: readonly Panel[] }[] = [
  {
    title: "Fleet",
    panels: [
      { title: "Agents", isStat: true, queries: one('count(up{job="nodekeeper"} == 1)', "answering") },
      {
        title: "Agents that do not answer",
        isStat: true,
        queries: one('count(up{job="nodekeeper"} == 0) or vector(0)', ""),
      },
      { title: "Versions", queries: one("count by (version) (nodekeeper_build_info)", "{{version}}") },
      {
        title: "Checks that fail",
        queries: one(
          `count by (node, check) (nodekeeper_server_health_check{${at}} == 0)`,
          "{{node}} {{check}}",
        ),
      },
    ],
  },
  {
    title: "Plugins",
    panels: [
      {
        title: "Plugins by state",
        queries: one(`sum by (type, state) (nodekeeper_plugins_plugins{${at}})`, "{{type}} {{state}}"),
      },
      {
        title: "Failed calls",
        unit: "ops",
        queries: [
          {
            expression: `sum by (plugin) (rate(nodekeeper_reporting_call_failures_total{${at}}[$__rate_interval]))`,
            legend: "{{plugin}} (reporter)",
          },
          {
            expression: `sum by (plugin) (rate(nodekeeper_eviction_plugin_call_failures_total{${at}}[$__rate_interval]))`,
            legend: "{{plugin}} (eviction)",
          },
        ],
      },
      {
        title: "Age of plugins' content",
        unit: "s",
        queries: one(
          `max by (node, plugin) (nodekeeper_reporting_content_age_seconds{${at}})`,
          "{{node}} {{plugin}}",
        ),
      },
    ],
  },
  {
    title: "Publishing",
    panels: [
      {
        title: "Writes",
        unit: "ops",
        queries: one(
          `sum by (object, result) (rate(nodekeeper_reporting_writes_total{${at}}[$__rate_interval]))`,
          "{{object}} {{result}}",
        ),
      },
      {
        title: "From a plugin's change to the write, 99th percentile",
        unit: "s",
        queries: p99("nodekeeper_reporting_change_to_write_seconds"),
      },
      {
        title: "Quarantined",
        queries: [
          {
            expression: `sum by (node, object) (nodekeeper_reporting_quarantined{${at}})`,
            legend: "{{node}} {{object}}",
          },
          {
            expression: `sum by (node, driver) (nodekeeper_devices_quarantined{${at}})`,
            legend: "{{node}} devices of {{driver}}",
          },
        ],
      },
    ],
  },
  {
    title: "Devices",
    panels: [
      {
        title: "Drivers by the state of their stream",
        queries: one(`sum by (state) (nodekeeper_devices_drivers{${at}})`, "{{state}}"),
      },
      {
        title: "Devices published",
        queries: one(`sum by (driver) (nodekeeper_devices_published{${at}})`, "{{driver}}"),
      },
      {
        title: "ResourceClaims prepared and unprepared",
        unit: "ops",
        queries: one(
          `sum by (driver, operation, result) (rate(nodekeeper_claims_operations_total{${at}}[$__rate_interval]))`,
          "{{driver}} {{operation}} {{result}}",
        ),
      },
    ],
  },
  {
    title: "Eviction",
    panels: [
      {
        title: "Evictions",
        unit: "cps",
        queries: [
          {
            expression: `sum by (plugin) (rate(nodekeeper_eviction_victims_total{${at}}[$__rate_interval]))`,
            legend: "{{plugin}}",
          },
          {
            expression: `sum by (plugin) (rate(nodekeeper_eviction_dry_run_victims_total{${at}}[$__rate_interval]))`,
            legend: "{{plugin}} (dry run)",
          },
        ],
      },
      {
        title: "How evictions ended",
        queries: one(
          `sum by (outcome) (increase(nodekeeper_eviction_ended_total{${at}}[$__rate_interval]))`,
          "{{outcome}}",
        ),
      },
      {
        title: "Rounds in which a threshold was on hold",
        unit: "cps",
        queries: one(
          `sum by (node, reason) (rate(nodekeeper_eviction_held_rounds_total{${at}}[$__rate_interval]))`,
          "{{node}} {{reason}}",
        ),
      },
      {
        title: "Duration of rounds, 99th percentile",
        unit: "s",
        queries: p99("nodekeeper_eviction_round_duration_seconds"),
      },
    ],
  },
  {
    title: "Pods and the container runtime",
    panels: [
      {
        title: "Pods in the runtime",
        queries: one(`sum by (node) (nodekeeper_lifecycle_pods{${at}})`, "{{node}}"),
      },
      {
        title: "Duration of relists, 99th percentile",
        unit: "s",
        queries: p99("nodekeeper_lifecycle_relist_duration_seconds"),
      },
      {
        title: "Time since the last list",
        unit: "s",
        queries: one(`time() - (nodekeeper_lifecycle_last_seen_seconds{${at}} > 0)`, "{{node}}"),
      },
      {
        title: "Oldest call to the runtime without an answer",
        unit: "s",
        queries: one(
          `max by (node, method) (nodekeeper_runtime_oldest_call_seconds{${at}})`,
          "{{node}} {{method}}",
        ),
      },
    ],
  },
  {
    title: "The agent itself",
    panels: [
      {
        title: "CPU",
        unit: "percentunit",
        queries: one(
          `rate(process_cpu_seconds_total{job="nodekeeper", ${at}}[$__rate_interval])`,
          "{{node}}",
        ),
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: one(`process_resident_memory_bytes{job="nodekeeper", ${at}}`, "{{node}}"),
      },
      {
        title: "Requests to the API server",
        unit: "ops",
        queries: one(
          `sum by (verb, resource, code) (rate(nodekeeper_kube_requests_total{${at}}[$__rate_interval]))`,
          "{{verb}} {{resource}} {{code}}",
        ),
      },
      {
        title: "State database: 1 survives the agent",
        queries: one(`nodekeeper_state_persistent{${at}}`, "{{node}}"),
      },
    ],
  },
];

const DATASOURCE = { type: "prometheus", uid: "$datasource" };
const WIDTH = 24;
const HEIGHT = 8;

/** The dashboard as Grafana imports it. */
function dashboard(): unknown {
  const panels: unknown[] = [];
  let y = 0;
  for (const { title, panels: ofRow } of rows) {
    panels.push({ id: panels.length + 1, type: "row", title, gridPos: { x: 0, y, w: WIDTH, h: 1 } });
    const w = WIDTH / ofRow.length;
    for (const [column, panel] of ofRow.entries())
      panels.push(panelOf(panel, panels.length + 1, { x: column * w, y: y + 1, w, h: HEIGHT }));
    y += HEIGHT + 1;
  }
  return {
    uid: "nodekeeper",
    title: "Nodekeeper",
    tags: ["nodekeeper"],
    schemaVersion: 39,
    refresh: "1m",
    time: { from: "now-6h", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus" },
        {
          name: "node",
          type: "query",
          datasource: DATASOURCE,
          query: "label_values(nodekeeper_build_info, node)",
          refresh: 2,
          includeAll: true,
          multi: true,
          allValue: ".*",
          current: { text: "All", value: "$__all" },
        },
      ],
    },
    panels,
  };
}

function panelOf({ title, queries, unit = "short", isStat }: Panel, id: number, gridPos: unknown): unknown {
  return {
    id,
    type: isStat ? "stat" : "timeseries",
    title,
    gridPos,
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: queries.map(({ expression, legend }, index) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + index),
      datasource: DATASOURCE,
      expr: expression,
      legendFormat: legend,
    })),
  };
}

/** The file's text. */
export function dashboardText(): string {
  return `${JSON.stringify(dashboard(), null, 2)}\n`;
}

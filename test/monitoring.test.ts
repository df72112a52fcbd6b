import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { startAgent } from "./support/agent.ts";
import { startCluster, type TestCluster } from "./support/cluster.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

interface Alert {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook_url: string };
}
const alerts: Alert[] = parse(read("deploy/helm/nodekeeper/files/alerts.yaml")).groups.flatMap(
  ({ rules }: { rules: Alert[] }) => rules,
);
interface Panel {
  title: string;
  targets?: { expr: string; legendFormat: string }[];
}
const panels: Panel[] = JSON.parse(read("deploy/helm/nodekeeper/files/dashboard.json")).panels;

/** Metrics of the agent that a query names: without the suffixes of a histogram's series. */
function metricsIn(query: string): string[] {
  const names = query.match(/\b(nodekeeper|process|nodejs)_[a-z_]+/g) ?? [];
  return names.map((name) => name.replace(/_(bucket|sum|count)$/, ""));
}

/** What Prometheus and its operator add to each series, and the buckets of a histogram. */
const everywhere = ["job", "instance", "node", "namespace", "pod", "container", "endpoint", "le"];

/** Labels of each metric, by the page that "npm run check" keeps in step with the agent. */
const labelsOf = new Map(
  [...read("docs/metrics.md").matchAll(/^\| `(\w+)` \| \w+ \| (.*?) \|/gm)].map(([, name, labels]) => [
    name as string,
    [...(labels as string).matchAll(/`(\w+)`/g)].map(([, label]) => label as string),
  ]),
);

/** Labels that a query selects or groups by, or that the text shown with its answer names. */
function labelsIn(query: string, text: string): string[] {
  const selected = query.matchAll(/\b(\w+)\s*(?:=~|!~|!=|=)\s*"/g);
  const grouped = query.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^()]*)\)/g);
  const shown = text.matchAll(/\$labels\.(\w+)|\{\{(\w+)\}\}/g);
  return [
    ...[...selected].map(([, label]) => label as string),
    ...[...grouped].flatMap(([, labels]) => (labels as string).split(",").map((label) => label.trim())),
    ...[...shown].map(([, ofAlert, ofLegend]) => (ofAlert ?? ofLegend) as string),
  ];
}

/** Those of them that none of the query's metrics has. */
function unknownLabels(query: string, text: string): string[] {
  const known = new Set([...everywhere, ...metricsIn(query).flatMap((name) => labelsOf.get(name) ?? [])]);
  return labelsIn(query, text).filter((label) => !known.has(label));
}

describe("alert rules and the dashboard", () => {
  let cluster: TestCluster;
  /** What an agent with every part on has at /metrics. */
  let exposed: Set<string>;

  beforeAll(async () => {
    cluster = await startCluster();
    const agent = await startAgent(cluster, {
      lifecycle: "true",
      runtimeEndpoint: join(cluster.directory, "no-runtime.sock"),
      devicesKubeletPluginEnabled: "true",
      devicesKubeletPluginRegistryDirectory: join(cluster.directory, "registry"),
      devicesKubeletPluginCdiDirectory: join(cluster.directory, "cdi"),
      reportingInTreePlugins: "*",
      evictionInTreePlugins: "*",
    });
    exposed = new Set(
      [...(await agent.metrics()).matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name as string),
    );
    await agent.stop();
  });

  afterAll(() => cluster?.stop());

  it.each(alerts.map(({ alert, expr }) => [alert, expr]))("%s names only metrics that exist", (_, expr) => {
    const metrics = metricsIn(expr as string);
    expect(metrics.filter((name) => !exposed.has(name))).toEqual([]);
    expect(metrics.length > 0 || /\bup\{/.test(expr as string)).toBe(true);
  });

  it.each(alerts)("$alert names only labels that its metrics have", ({ expr, annotations }) => {
    expect(unknownLabels(expr, annotations.description)).toEqual([]);
  });

  it("the dashboard names only labels that its metrics have", () => {
    const targets = panels.flatMap(({ targets = [] }) => targets);
    const all = targets.map(({ expr, legendFormat }) => [expr, unknownLabels(expr, legendFormat)]);
    expect(all.filter(([, unknown]) => unknown!.length > 0)).toEqual([]);
    // As it would be for a label that no metric has.
    const other = "sum by (step) (rate(nodekeeper_eviction_round_duration_seconds_bucket[5m]))";
    expect(unknownLabels(other, "{{method}}")).toEqual(["step", "method"]);
  });

  it("the dashboard names only metrics that exist, in each panel some", () => {
    for (const { title, targets } of panels.filter(({ targets }) => targets)) {
      for (const { expr } of targets!) {
        expect(
          metricsIn(expr).filter((name) => !exposed.has(name)),
          title,
        ).toEqual([]);
        expect(metricsIn(expr).length > 0 || /\bup\{/.test(expr), title).toBe(true);
      }
    }
  });

  it.each(alerts.map(({ alert, ...rest }) => [alert, rest] as const))(
    "%s has a section about what to do",
    (alert, { labels, annotations }) => {
      const [file, anchor] = annotations.runbook_url.split("#");
      const headings = [...read(file!).matchAll(/^### (\S+)$/gm)].map(([, name]) => name!.toLowerCase());
      expect(headings).toContain(anchor);
      expect(anchor).toBe(alert.toLowerCase());
      expect(["critical", "warning", "info"]).toContain(labels.severity);
    },
  );
});

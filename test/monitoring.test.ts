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
  targets?: { expr: string }[];
}
const panels: Panel[] = JSON.parse(read("deploy/helm/nodekeeper/files/dashboard.json")).panels;

/** Metrics of the agent that a query names: without the suffixes of a histogram's series. */
function metricsIn(query: string): string[] {
  const names = query.match(/\b(nodekeeper|process|nodejs)_[a-z_]+/g) ?? [];
  return names.map((name) => name.replace(/_(bucket|sum|count)$/, ""));
}

describe("alert rules and the dashboard", () => {
  let cluster: TestCluster;
  /** What an agent with every part on has at /metrics. */
  let exposed: Set<string>;

  beforeAll(async () => {
    cluster = await startCluster();
    const agent = await startAgent(cluster, {
      lifecycle: "true",
      runtimeEndpoint: join(cluster.folder, "no-runtime.sock"),
      devicesKubeletPluginEnabled: "true",
      devicesKubeletPluginRegistryDirectory: join(cluster.folder, "registry"),
      devicesKubeletPluginCdiDirectory: join(cluster.folder, "cdi"),
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

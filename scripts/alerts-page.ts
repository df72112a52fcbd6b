import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { tableOf, withSections } from "./docs/tables.ts";
import { root } from "./programs.ts";

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string };
}

/** docs/alerts.md with the alert rules that the chart installs. Throws if their file has another form. */
export async function alertsPage(page: string): Promise<string> {
  const text = await readFile(join(root, "deploy/helm/nodekeeper/files/alerts.yaml"), "utf8");
  const { groups } = parse(text) as { groups: { name: string; rules: Rule[] }[] };
  const sections = groups.map(({ name, rules }) => {
    const rows = rules.map(({ alert, expr, labels, annotations, for: since }) => [
      `[${alert}](monitoring.md#${alert.toLowerCase()})`,
      labels.severity,
      since ?? "at once",
      annotations.summary,
      `\`${expr.replace(/\s+/g, " ").trim()}\``,
    ]);
    return `## ${name}\n\n${tableOf(["alert", "severity", "after", "meaning", "condition"], rows)}\n`;
  });
  return withSections(page, sections);
}

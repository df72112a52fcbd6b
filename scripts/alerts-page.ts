// docs/alerts.md: the alert rules that the chart installs.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { root } from "./run-command.ts";

/** Where the page is. */
export const ALERTS_PAGE = "docs/alerts.md";

const RULES = "deploy/helm/nodekeeper/files/alerts.yaml";

interface Rules {
  groups: { name: string; rules: Rule[] }[];
}

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string };
}

const head = `# Alerts

<!-- Generated from ${RULES} by "npm run generate". -->

The rules that the chart installs with \`prometheusRule.enabled\`, from \`${RULES}\`. What each
means, and what to do, is behind its name; how Prometheus gets them: [monitoring.md](monitoring.md).
`;

/** The text of the page. Throws where the file is not one of alert rules. */
export async function alertsPage(): Promise<string> {
  const { groups } = parse(await readFile(join(root, RULES), "utf8")) as Rules;
  const sections = groups.map(({ name, rules }) => {
    const rows = rules.map(({ alert, expr, labels, annotations, for: since }) => {
      const condition = expr.replace(/\s+/g, " ").trim().replaceAll("|", "\\|");
      const link = `[${alert}](monitoring.md#${alert.toLowerCase()})`;
      return `| ${link} | ${labels.severity} | ${since ?? "at once"} | ${annotations.summary} | \`${condition}\` |\n`;
    });
    return `\n## ${name}\n\n| alert | severity | after | meaning | condition |\n|---|---|---|---|---|\n${rows.join("")}`;
  });
  return head + sections.join("");
}

// Files that are made of code, manifests and other files, as a whole or in part, besides the code of proto/.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ALERTS_PAGE, alertsPage } from "./alerts-page.ts";
import { CHART_SCHEMA, chartSchema } from "./chart-schema.ts";
import { chartTemplates } from "./chart-templates.ts";
import { CHART_VALUES_PAGE, chartValuesPage } from "./chart-values-page.ts";
import { COMMANDS_PAGE, commandsPage } from "./commands-page.ts";
import { CONFIGURATION_PAGE, configurationPage } from "./configuration-page.ts";
import { ERRORS_PAGE, errorsPage } from "./errors-page.ts";
import { EVENTS_PAGE, eventsPage } from "./events-page.ts";
import { MIGRATION_PAGE, migrationPage } from "./katalyst-differences.ts";
import { METRICS_PAGE, metricsPage } from "./metrics-page.ts";
import { root } from "./run-command.ts";

/** Their texts by path, as the sources give them. */
async function generatedFiles(): Promise<Map<string, string>> {
  return new Map([
    [ALERTS_PAGE, await alertsPage()],
    [CHART_SCHEMA, await chartSchema()],
    [CHART_VALUES_PAGE, await chartValuesPage()],
    [COMMANDS_PAGE, commandsPage()],
    [CONFIGURATION_PAGE, await configurationPage()],
    [ERRORS_PAGE, errorsPage()],
    [EVENTS_PAGE, await eventsPage()],
    [METRICS_PAGE, await metricsPage()],
    [MIGRATION_PAGE, await migrationPage()],
    ...(await chartTemplates()),
  ]);
}

/** Writes those that differ. */
export async function writeGeneratedFiles(): Promise<void> {
  for (const [path, text] of await drifted()) await writeFile(join(root, path), text);
}

/** Those that are not what their sources give. */
export async function findFileDrift(): Promise<string[]> {
  return [...(await drifted()).keys()].map(
    (path) => `${path} differs from its source: run "npm run generate"`,
  );
}

async function drifted(): Promise<Map<string, string>> {
  const differing = new Map<string, string>();
  for (const [path, text] of await generatedFiles()) {
    const present = await readFile(join(root, path), "utf8").catch(() => undefined);
    if (present !== text) differing.set(path, text);
  }
  return differing;
}

// Pages of docs/ that are generated as a whole, besides docs/errors.md.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ALERTS_PAGE, alertsPage } from "./alerts-page.ts";
import { COMMANDS_PAGE, commandsPage } from "./commands-page.ts";
import { EVENTS_PAGE, eventsPage } from "./events-page.ts";
import { METRICS_PAGE, metricsPage } from "./metrics-page.ts";
import { root } from "./run-command.ts";

const pages: Readonly<Record<string, () => Promise<string>>> = {
  [ALERTS_PAGE]: alertsPage,
  [COMMANDS_PAGE]: async () => commandsPage(),
  [EVENTS_PAGE]: eventsPage,
  [METRICS_PAGE]: metricsPage,
};

/** Writes them. */
export async function writeGeneratedPages(): Promise<void> {
  for (const [path, page] of Object.entries(pages)) await writeFile(join(root, path), await page());
}

/** Those that are not what the code gives. */
export async function findPageDrift(): Promise<string[]> {
  const problems = Object.entries(pages).map(async ([path, page]) => {
    const present = await readFile(join(root, path), "utf8").catch(() => "");
    return present === (await page()) ? [] : [`${path} differs from the code: run "npm run generate"`];
  });
  return (await Promise.all(problems)).flat();
}

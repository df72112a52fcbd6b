import { glob, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { acceptedDifferences } from "../test/e2e/katalyst/differences.ts";
import { alertsPage } from "./alerts-page.ts";
import { archivePage } from "./archive-page.ts";
import { chartSchema, chartSettings } from "./chart-schema.ts";
import { chartTemplates } from "./chart-templates.ts";
import { chartValuesPage } from "./chart-values-page.ts";
import { commandsPage } from "./commands-page.ts";
import { configurationPage } from "./configuration-page.ts";
import { withPublication } from "./docs/publication.ts";
import { tableOf, withTable } from "./docs/tables.ts";
import { errorsPage } from "./errors-page.ts";
import { eventsPage } from "./events-page.ts";
import { metricsPage } from "./metrics-page.ts";
import { performanceImage, performancePage } from "./performance-page.ts";
import { root, runTool, withTemporaryDirectory } from "./programs.ts";
import { traceImage } from "./trace-picture.ts";

// What `npm run generate` writes: packages/core/src/gen from proto/, and files that are made, as a whole or in part, of code,
// manifests and other files.

const CODE = "packages/core/src/gen/**/*.*";

const { publishedTo, repository } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

/** Pages with commands that differ while nothing is published. */
const published = [
  "README.md",
  "docs/first-driver.md",
  "docs/guides/install.md",
  "docs/guides/kubectl-plugin.md",
  "docs/guides/monitoring.md",
  "docs/guides/plugins.md",
  "docs/guides/policies.md",
  "packages/create-plugin/README.md",
  "packages/sdk/README.md",
  "packages/testing/README.md",
];

/** Files of which a part is generated, with the function that replaces it in their present text. */
const parts: Readonly<Record<string, (present: string) => string | Promise<string>>> = {
  "deploy/helm/nodekeeper/Chart.yaml": chartLinks,
  "deploy/helm/nodekeeper/README.md": async (page) =>
    withPublication("deploy/helm/nodekeeper/README.md", await chartValuesPage(page), publishedTo),
  "deploy/helm/nodekeeper/files/settings.json": chartSettings,
  "deploy/helm/nodekeeper/values.schema.json": chartSchema,
  "docs/alerts.md": alertsPage,
  "docs/archive.md": archivePage,
  "docs/commands.md": commandsPage,
  "docs/configuration.md": configurationPage,
  "docs/errors.md": errorsPage,
  "docs/events.md": eventsPage,
  "docs/install.md": async (page) =>
    withPublication("docs/install.md", await chartValuesPage(page), publishedTo),
  "docs/metrics.md": metricsPage,
  "docs/migrating-from-katalyst.md": migrationPage,
  "docs/performance.md": performancePage,
  ...Object.fromEntries(
    published.map((path) => [path, (page: string) => withPublication(path, page, publishedTo)]),
  ),
};

/** Writes the files that differ, and removes those that have no source. */
export async function writeGeneratedFiles(): Promise<void> {
  for (const [path, text] of await findDifferences()) {
    if (text === undefined) await rm(join(root, path));
    else {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
  }
}

/** Files that are not what their sources give: changed, missing or extra. */
export async function findFileDrift(): Promise<string[]> {
  return [...(await findDifferences()).keys()].map(
    (path) => `${path} differs from its source: run "npm run generate"`,
  );
}

/** The wanted texts of files that differ, by path; undefined if a file has no source. */
async function findDifferences(): Promise<Map<string, string | undefined>> {
  const wanted = new Map([...(await generatedCode()), ...(await chartTemplates())]);
  wanted.set("docs/images/performance.svg", await performanceImage());
  wanted.set("docs/images/archive-trace.svg", traceImage());
  for (const [path, replace] of Object.entries(parts))
    wanted.set(path, await replace(await readFile(join(root, path), "utf8")));
  const paths = new Set(wanted.keys());
  for await (const path of glob(CODE, { cwd: root })) paths.add(path);
  const differences = new Map<string, string | undefined>();
  for (const path of paths) {
    const present = await readFile(join(root, path), "utf8").catch(() => undefined);
    if (present !== wanted.get(path)) differences.set(path, wanted.get(path));
  }
  return differences;
}

/** Generates code from proto/, without any network. */
function generatedCode(): Promise<Map<string, string>> {
  return withTemporaryDirectory(async (directory) => {
    await runTool("buf", ["generate", "--output", directory]);
    const contents = new Map<string, string>();
    for await (const path of glob(CODE, { cwd: directory }))
      contents.set(path, await readFile(join(directory, path), "utf8"));
    return contents;
  });
}

if (import.meta.main) await writeGeneratedFiles();

/**
 * docs/migrating-from-katalyst.md with the table of differences between the rounds of katalyst's eviction manager and of
 * this agent's. The end-to-end suite shows each of them. Throws if the page has no such table.
 */
function migrationPage(page: string): string {
  const rows = acceptedDifferences.map(({ katalyst, nodekeeper, why, until }) => [
    `${katalyst}${until ? ` (before ${until})` : ""}`,
    nodekeeper,
    why,
  ]);
  return withTable(page, tableOf(["katalyst", "Nodekeeper", "why"], rows));
}

/** Chart.yaml with its links to the repository that package.json names, at the end. */
function chartLinks(present: string): string {
  const [head] = present.split(/^home:/m, 1);
  const icon = `${repository}/raw/main/docs/images/icon.svg`;
  return `${head}home: ${repository}\nsources:\n  - ${repository}\nicon: ${icon}\n`;
}

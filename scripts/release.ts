// Gathers what a release publishes: npm run release -- --help
import { existsSync } from "node:fs";
import { copyFile, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseDocument } from "yaml";
import { readArguments } from "./arguments.ts";
import { sourceDateEpoch } from "./bundle.ts";
import { printProgress, root, run, withTemporaryDirectory } from "./programs.ts";

const help = `usage: npm run release -- [options]

Writes a directory with what .ci/publish publishes: the packages of \`npm run build\`, the image of \`npm run image\`, and the
chart, whose default image is this one, by its digest in the registry. The same input gives the same bytes.

  --registry PATH     of the OCI registry (default: publishedTo in package.json)
  --dist DIRECTORY    what \`npm run build\` made (default dist)
  --image FILE        what \`npm run image\` made (default DIST/nodekeeper-image.tar)
  --output DIRECTORY  (default DIST/release)
  --help

SOURCE_DATE_EPOCH, in seconds, is the time that files of the chart have (default 0).`;

const { publishedTo } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
const options = {
  registry: { type: "string", default: publishedTo as string },
  dist: { type: "string", default: join(root, "dist") },
  image: { type: "string" },
  output: { type: "string" },
} as const;
const { registry, dist, image, output } = readArguments(help, { options }, ({ values }) => {
  if (!values.registry) throw new Error("set publishedTo in package.json, or --registry");
  const dist = resolve(values.dist);
  return {
    registry: values.registry,
    dist,
    image: resolve(values.image ?? join(dist, "nodekeeper-image.tar")),
    output: resolve(values.output ?? join(dist, "release")),
  };
});

await rm(output, { recursive: true, force: true });
await mkdir(join(output, "packages"), { recursive: true });
await packPackages();
await copyFile(image, join(output, "image.tar"));
await packChart();
printProgress(`${output}: packages, image.tar, chart.tgz`);

async function packPackages(): Promise<void> {
  const names = ["nodekeeper", "sdk", "testing", "create-plugin"].map((name) => join(dist, name));
  const missing = names.filter((name) => !existsSync(name));
  if (missing.length > 0) throw new Error(`there is no ${missing.join(", ")}: run "npm run build"`);
  const destination = ["--pack-destination", join(output, "packages")];
  await run("npm", ["pack", "--ignore-scripts", "--silent", ...destination, ...names], { cwd: root });
}

/** The archive that `helm package` makes, with the image set, and without the time. */
async function packChart(): Promise<void> {
  const index = JSON.parse(await run("tar", ["-xOf", image, "index.json"]));
  const { version } = JSON.parse(await readFile(join(dist, "nodekeeper/package.json"), "utf8"));
  await withTemporaryDirectory(async (work) => {
    const chart = join(work, "nodekeeper");
    await cp(join(root, "deploy/helm/nodekeeper"), chart, { recursive: true });
    await edit(join(chart, "Chart.yaml"), { version, appVersion: version });
    const { digest } = index.manifests[0];
    await edit(join(chart, "values.yaml"), {
      "image.repository": `${registry}/nodekeeper`,
      "image.digest": digest,
    });
    const tar = join(work, "chart.tar");
    const owner = ["--owner=0", "--group=0", "--numeric-owner", "--mode=go-w,a+rX"];
    const same = [`--mtime=@${sourceDateEpoch()}`, ...owner, "--format=gnu"];
    // Helm's archives have no entries of directories.
    const files = await run("find", ["nodekeeper", "-type", "f", "-printf", "%p\\n"], { cwd: work });
    const sorted = files.trim().split("\n").sort();
    await run("tar", [...same, "-C", work, "-cf", tar, ...sorted]);
    await run("gzip", ["-n9", tar]);
    await copyFile(`${tar}.gz`, join(output, "chart.tgz"));
  });
}

/** Replaces values of a YAML file by path, and keeps its comments. */
async function edit(file: string, values: Readonly<Record<string, string>>): Promise<void> {
  const document = parseDocument(await readFile(file, "utf8"));
  for (const [path, value] of Object.entries(values)) document.setIn(path.split("."), value);
  await writeFile(file, document.toString({ lineWidth: 0, flowCollectionPadding: false }));
}

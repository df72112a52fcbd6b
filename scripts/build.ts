// Makes dist/, one directory for each package as it is published and put into images: npm run build [-- DIRECTORY]
import { chmod, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { createProgram } from "../packages/agent/src/cli/index.ts";
import { localAccess } from "../packages/agent/src/cli/local-access.ts";
import { standardOutput } from "../packages/agent/src/cli/output.ts";
import { isTemplateFile, templates } from "../packages/create-plugin/src/templates.ts";
import { buildDividedProgram, buildProgram, common, report, sourceDateEpoch } from "./bundle.ts";
import { writeDeclarations } from "./declarations.ts";
import { buildKubectlPlugin } from "./kubectl-plugin.ts";
import { manPageOf } from "./man-page.ts";
import { buildPage } from "./page-bundle.ts";
import { root } from "./programs.ts";
import { bundledPackages } from "./supply/bundled-packages.ts";
import { noticesOf } from "./supply/notices.ts";
import { type Manifest, publishedManifest } from "./supply/published-manifest.ts";
import { npmComponents, sbomOf } from "./supply/sbom.ts";

const [directory = join(root, "dist")] = process.argv.slice(2);
const dist = resolve(directory);

const agent = await readManifest("agent");

// Leaves packages to be imported where used, and only what is used: the SDK must not load prom-client for nothing.
const leavePackages: Plugin = {
  name: "leave packages",
  setup(bundle) {
    bundle.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === "entry-point" || path.startsWith("@nodekeeper/")
        ? undefined
        : { path, external: true, sideEffects: false },
    );
  },
};

await rm(dist, { recursive: true, force: true });
await Promise.all([
  buildAgent(),
  buildLibrary("sdk", { ".": "index" }),
  buildLibrary("testing", { ".": "index", "./until": "until" }),
  buildCreatePlugin(),
]);

/**
 * Builds the agent: the program with its commands, which needs only Node, the page that it serves, the sample plugins
 * of `nodekeeper dev`, and the kubectl plugin as a single file.
 */
async function buildAgent(): Promise<void> {
  const directory = join(dist, "nodekeeper");
  await mkdir(directory, { recursive: true });
  const [metafiles, ofPlugin, ofPage] = await Promise.all([
    Promise.all([
      buildDividedProgram("packages/agent/src/main.ts", directory),
      ...["reporter", "driver", "eviction"].map((name) =>
        buildProgram(`examples/${name}/main.ts`, join(directory, `example-${name}.js`)),
      ),
    ]),
    buildKubectlPlugin(directory),
    buildPage(join(directory, "page")),
    cp(join(root, "packages/agent/bin/nodekeeper.js"), join(directory, "nodekeeper.js")),
    ...["README.md", "LICENSE", "docs", "deploy", "proto"].map((name) =>
      cp(join(root, name), join(directory, name), { recursive: true }),
    ),
  ]);
  const packages = await bundledPackages([...metafiles, ...ofPlugin, ofPage]);
  const { name, version, license: licence, description } = agent;
  const declared = createProgram({ output: standardOutput, fail() {}, agents: localAccess });
  const subject = { name, version, licence, description, type: "application" } as const;
  await Promise.all([
    writeFile(join(directory, "THIRD-PARTY-NOTICES.txt"), noticesOf(packages)),
    writeFile(join(directory, "sbom.cdx.json"), sbomOf(subject, npmComponents(packages), sourceDateEpoch())),
    chmod(join(directory, "nodekeeper.js"), 0o755),
    writeFile(join(directory, "nodekeeper.1"), manPageOf(declared, version)),
  ]);
  await writeManifest(directory, "agent", {
    ...agent,
    man: ["./nodekeeper.1"],
    bin: {
      nodekeeper: "nodekeeper.js",
      "kubectl-nodekeeper": "kubectl-nodekeeper.cjs",
      "kubectl_complete-nodekeeper": "kubectl_complete-nodekeeper",
    },
  });
}

/** The command behind `npm create @nodekeeper/plugin`, with the files that projects are made of. */
async function buildCreatePlugin(): Promise<void> {
  const directory = join(dist, "create-plugin");
  await mkdir(directory, { recursive: true });
  const all = Object.values(templates).flatMap((ofLanguage) => Object.values(ofLanguage));
  const files = new Set(all.flatMap(({ named, copied }) => Object.values({ ...named, ...copied })));
  await Promise.all([
    buildProgram("packages/create-plugin/src/main.ts", join(directory, "main.js")),
    cp(join(root, "packages/create-plugin/bin/create-plugin.js"), join(directory, "create-plugin.js")),
    cp(join(root, "packages/create-plugin/README.md"), join(directory, "README.md")),
    cp(join(root, "LICENSE"), join(directory, "LICENSE")),
    ...[...files].map((file) =>
      cp(join(root, file), join(directory, "templates", file), { recursive: true, filter: isTemplateFile }),
    ),
  ]);
  await chmod(join(directory, "create-plugin.js"), 0o755);
  const manifest = await readManifest("create-plugin");
  await writeManifest(directory, "create-plugin", {
    ...manifest,
    bin: { "create-plugin": "create-plugin.js" },
  });
}

/**
 * A package that others import. It holds what it uses of core, and shares other packages with its importer.
 * @param entries what it exports, and the file of src/ that holds it
 */
async function buildLibrary(name: string, entries: Readonly<Record<string, string>>): Promise<void> {
  const directory = join(dist, name);
  const manifest = await readManifest(name);
  await mkdir(join(directory, "types"), { recursive: true });
  const sources = Object.values(entries).map((entry) => `packages/${name}/src/${entry}.ts`);
  const [{ metafile }] = await Promise.all([
    build({
      ...common,
      entryPoints: sources,
      outdir: directory,
      // One copy of what the entries share.
      splitting: sources.length > 1,
      plugins: [leavePackages],
      metafile: true,
    }),
    writeDeclarations(sources, join(directory, "types")),
    cp(join(root, `packages/${name}/README.md`), join(directory, "README.md")),
    cp(join(root, "LICENSE"), join(directory, "LICENSE")),
  ]);
  checkDependencies(manifest, metafile);
  const exports = Object.entries(entries).map(([path, entry]) => [
    path,
    { types: `./types/${name}/src/${entry}.d.ts`, default: `./${entry}.js` },
  ]);
  await writeManifest(directory, name, {
    ...manifest,
    exports: { ...Object.fromEntries(exports), "./package.json": "./package.json" },
  });
  for (const entry of Object.values(entries)) await report(join(directory, `${entry}.js`));
}

// What the bundle imports is what its users' npm must install.
function checkDependencies({ name, dependencies = {} }: Manifest, metafile: Metafile): void {
  const imported = Object.values(metafile.outputs)
    .flatMap(({ imports }) => imports.filter(({ external }) => external))
    .map(({ path }) => /^(?:@[^/]+\/)?[^/]+/.exec(path)![0])
    .filter((path) => !path.startsWith("node:"));
  const missing = new Set(imported.filter((path) => !dependencies[path]));
  if (missing.size > 0)
    throw new Error(`${name} imports ${[...missing].join(", ")}: not among its dependencies`);
}

async function readManifest(name: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(root, `packages/${name}/package.json`), "utf8"));
}

/** @param name of the package's directory below packages */
async function writeManifest(directory: string, name: string, manifest: Manifest): Promise<void> {
  const { repository } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const published = publishedManifest(manifest, repository, `packages/${name}`);
  await writeFile(join(directory, "package.json"), `${JSON.stringify(published, undefined, 2)}\n`);
}

// Makes dist/, one folder for each package as it is published and put into images: npm run build [-- FOLDER]
import { chmod, cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { createProgram } from "../packages/agent/src/cli/index.ts";
import { localAccess } from "../packages/agent/src/cli/local-access.ts";
import { standardOutput } from "../packages/agent/src/cli/output.ts";
import { templates } from "../packages/create-plugin/src/templates.ts";
import { apart, buildProgram, common, report, sourceDateEpoch } from "./bundle.ts";
import { writeDeclarations } from "./declarations.ts";
import { buildKubectlPlugin } from "./kubectl-plugin.ts";
import { manPageOf } from "./man-page.ts";
import { buildPage } from "./page-bundle.ts";
import { root } from "./run-command.ts";
import { bundledPackages } from "./supply/bundled-packages.ts";
import { noticesOf } from "./supply/notices.ts";
import { npmComponents, sbomOf } from "./supply/sbom.ts";

const [folder = join(root, "dist")] = process.argv.slice(2);
const dist = resolve(folder);

interface Manifest {
  name: string;
  version: string;
  description: string;
  license: string;
  dependencies?: Record<string, string>;
  [more: string]: unknown;
}

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

// The entry starts the process over before it loads the commands.
const commandsApart = apart(/^\.\/cli\/index\.ts$/, "./cli.js");
// Loaded when a command fails: the agent does not keep the texts in memory.
const catalogueApart = apart(/^\.\/error-catalogue\/index\.ts$/, "./error-catalogue.js");

await rm(dist, { recursive: true, force: true });
await Promise.all([
  buildAgent(),
  buildLibrary("sdk", { ".": "index" }),
  buildLibrary("testing", { ".": "index", "./until": "until" }),
  buildCreatePlugin(),
]);

/**
 * The agent and its commands in three files that need Node alone, the page that it serves, what `nodekeeper dev` runs as the sample plugins, and
 * the plugin of kubectl in one file.
 */
async function buildAgent(): Promise<void> {
  const folder = join(dist, "nodekeeper");
  await mkdir(folder, { recursive: true });
  const [metafiles, ofPlugin, ofPage] = await Promise.all([
    Promise.all([
      buildProgram("packages/agent/src/main.ts", join(folder, "main.js"), [commandsApart]),
      buildProgram("packages/agent/src/cli/index.ts", join(folder, "cli.js"), [catalogueApart]),
      buildProgram("packages/agent/src/cli/error-catalogue/index.ts", join(folder, "error-catalogue.js")),
      ...["reporter", "driver", "eviction"].map((name) =>
        buildProgram(`examples/${name}/main.ts`, join(folder, `example-${name}.js`)),
      ),
    ]),
    buildKubectlPlugin(folder),
    buildPage(join(folder, "page")),
    cp(join(root, "packages/agent/bin/nodekeeper.js"), join(folder, "nodekeeper.js")),
    ...["README.md", "LICENSE", "docs", "deploy", "proto"].map((name) =>
      cp(join(root, name), join(folder, name), { recursive: true }),
    ),
  ]);
  const packages = await bundledPackages([...metafiles, ofPlugin, ofPage]);
  const { name, version, license: licence, description } = agent;
  const declared = createProgram({ output: standardOutput, fail() {}, agents: localAccess });
  const subject = { name, version, licence, description, type: "application" } as const;
  await Promise.all([
    writeFile(join(folder, "THIRD-PARTY-NOTICES.txt"), noticesOf(packages)),
    writeFile(join(folder, "sbom.cdx.json"), sbomOf(subject, npmComponents(packages), sourceDateEpoch())),
    chmod(join(folder, "nodekeeper.js"), 0o755),
    writeFile(join(folder, "nodekeeper.1"), manPageOf(declared, version)),
  ]);
  await writeManifest(folder, {
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
  const folder = join(dist, "create-plugin");
  await mkdir(folder, { recursive: true });
  const all = Object.values(templates).flatMap((ofLanguage) => Object.values(ofLanguage));
  const files = new Set(all.flatMap(({ named, copied }) => Object.values({ ...named, ...copied })));
  await Promise.all([
    buildProgram("packages/create-plugin/src/main.ts", join(folder, "main.js")),
    cp(join(root, "packages/create-plugin/bin/create-plugin.js"), join(folder, "create-plugin.js")),
    cp(join(root, "packages/create-plugin/README.md"), join(folder, "README.md")),
    cp(join(root, "LICENSE"), join(folder, "LICENSE")),
    ...[...files].map((file) => cp(join(root, file), join(folder, "templates", file), { recursive: true })),
  ]);
  await chmod(join(folder, "create-plugin.js"), 0o755);
  const manifest = await readManifest("create-plugin");
  await writeManifest(folder, { ...manifest, bin: { "create-plugin": "create-plugin.js" } });
}

/**
 * A package that others import. It holds what it uses of core, and shares other packages with its importer.
 * @param entries what it exports, and the file of src/ that holds it
 */
async function buildLibrary(name: string, entries: Readonly<Record<string, string>>): Promise<void> {
  const folder = join(dist, name);
  const manifest = await readManifest(name);
  await mkdir(join(folder, "types"), { recursive: true });
  const sources = Object.values(entries).map((entry) => `packages/${name}/src/${entry}.ts`);
  const [{ metafile }] = await Promise.all([
    build({
      ...common,
      entryPoints: sources,
      outdir: folder,
      // One copy of what the entries share.
      splitting: sources.length > 1,
      plugins: [leavePackages],
      metafile: true,
    }),
    writeDeclarations(sources, join(folder, "types")),
    cp(join(root, `packages/${name}/README.md`), join(folder, "README.md")),
    cp(join(root, "LICENSE"), join(folder, "LICENSE")),
  ]);
  checkDependencies(manifest, metafile);
  const exports = Object.entries(entries).map(([path, entry]) => [
    path,
    { types: `./types/${name}/src/${entry}.d.ts`, default: `./${entry}.js` },
  ]);
  await writeManifest(folder, {
    ...manifest,
    exports: { ...Object.fromEntries(exports), "./package.json": "./package.json" },
  });
  for (const entry of Object.values(entries)) await report(join(folder, `${entry}.js`));
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

/** The package.json that is published: core is in the bundles, and no importer builds them. */
async function writeManifest(folder: string, { devDependencies: _, ...manifest }: Manifest): Promise<void> {
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

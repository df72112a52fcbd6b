// Makes the agent and its commands one executable file, with Node inside: npm run single -- --help
import { chmodSync, copyFileSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Plugin } from "esbuild";
import { agentOptions } from "../packages/agent/src/launch.ts";
import { readArguments } from "./arguments.ts";
import { buildScript } from "./bundle.ts";
import {
  type Architecture,
  chosenArchitectures,
  nodeLicence,
  nodeProgram,
  nodeVersion,
} from "./image/root-filesystem.ts";
import { buildFleetPage, buildPage } from "./page-bundle.ts";
import { printProgress, root, run, runTool, withTemporaryDirectory } from "./programs.ts";

const help = `usage: npm run single -- [options]

Makes DIST/nodekeeper-linux-ARCH: a single executable application of Node, which needs glibc and libstdc++ of the machine
and nothing else. The same sources and packages give the same bytes. Beside it goes LICENSE-node.txt, the licence of Node.

  --arch A[,A]   x64, arm64 (default this machine's)
  --dist DIRECTORY  (default dist)
  --help`;

/** The fuse in Node's executable that marks an injected script: Node's docs, "Single executable applications". */
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

/** `nodekeeper dev` runs sample plugins as scripts of their own, which lie beside the bundle of the npm package alone. */
const withoutDev: Plugin = {
  name: "without dev",
  setup(bundle) {
    bundle.onResolve({ filter: /^\.\.\/dev\.ts$/ }, ({ path }) => ({ path, namespace: "without-dev" }));
    bundle.onLoad({ filter: /./, namespace: "without-dev" }, () => ({
      contents: `export function devCommand() {
        throw new Error("the single executable has no sample plugins: run \\"npx nodekeeper dev\\", of the npm package");
      }`,
    }));
  },
};

const options = {
  arch: { type: "string", default: process.arch },
  dist: { type: "string", default: join(root, "dist") },
} as const;
const { chosen, dist } = readArguments(help, { options }, ({ values }) => ({
  chosen: chosenArchitectures(values.arch, "node"),
  dist: resolve(values.dist),
}));
mkdirSync(dist, { recursive: true });
copyFileSync(nodeLicence(), join(dist, "LICENSE-node.txt"));
await withTemporaryDirectory(async (work) => {
  const blob = await makeBlob(work);
  for (const architecture of chosen) await makeExecutable(work, architecture, blob);
});

/** The script in the form that Node reads within its own executable. It is the same for all architectures. */
async function makeBlob(work: string): Promise<string> {
  await buildScript("packages/agent/src/main.ts", join(work, "nodekeeper.cjs"), [withoutDev]);
  const page = join(work, "page");
  await buildPage(page);
  await buildFleetPage(page);
  const assets = Object.fromEntries(readdirSync(page).map((name) => [`page/${name}`, `page/${name}`]));
  // The blob contains the path of the script as given here. A relative path keeps the temporary directory out of it.
  const files = { main: "nodekeeper.cjs", output: "nodekeeper.blob" };
  const configuration = {
    ...files,
    assets,
    disableExperimentalSEAWarning: true,
    useCodeCache: false,
    execArgv: agentOptions,
  };
  writeFileSync(join(work, "sea-config.json"), JSON.stringify(configuration));
  const node = join(root, "node_modules/node/bin/node");
  await run(node, ["--experimental-sea-config", "sea-config.json"], { cwd: work });
  return join(work, files.output);
}

async function makeExecutable(work: string, architecture: Architecture, blob: string): Promise<void> {
  const file = join(dist, `nodekeeper-linux-${architecture.node}`);
  // Not written in place: npm may have linked the file from elsewhere.
  rmSync(file, { force: true });
  copyFileSync(await nodeProgram(work, architecture, nodeVersion()), file);
  chmodSync(file, 0o755);
  await runTool("postject", [file, "NODE_SEA_BLOB", blob, "--sentinel-fuse", FUSE]);
  printProgress(`${file}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
}

import { chmod, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Metafile, Plugin } from "esbuild";
import { bundle, common } from "./bundle.ts";
import { buildFleetPage } from "./page-bundle.ts";
import { withTemporaryDirectory } from "./programs.ts";

// Nothing happens on import in this repository, and the plugin uses little of what it imports.
const withoutUnused: Plugin = {
  name: "without unused",
  setup(bundling) {
    bundling.onResolve({ filter: /^/ }, async ({ path, kind, pluginData, importer, resolveDir }) => {
      if (kind === "entry-point" || pluginData === "resolved") return undefined;
      const found = await bundling.resolve(path, { kind, importer, resolveDir, pluginData: "resolved" });
      return { ...found, sideEffects: false };
    });
  },
};

/**
 * Returns the text of a module with `await import(…)` replaced by static imports. In a single file, dynamic imports
 * save nothing, and esbuild keeps everything that a dynamically imported module imports: pino, prom-client and
 * OpenTelemetry, which the plugin does not use.
 */
export function importedAtOnce(text: string): string {
  const imports = new Set<string>();
  const names = text.replaceAll(
    /const \{([^}]*)\} = await import\(("[^"]+")\);/g,
    (_, taken: string, path: string) => {
      imports.add(`import {${taken.replaceAll(":", " as ")}} from ${path};`);
      return "";
    },
  );
  const rest = names.replaceAll(/await import\(("[^"]+")\)/g, (_, path: string) => {
    const name = `imported_${path.replaceAll(/\W/g, "_")}`;
    imports.add(`import * as ${name} from ${path};`);
    return name;
  });
  return [...imports, rest].join("\n");
}

const atOnce: Plugin = {
  name: "imports at once",
  setup(bundling) {
    bundling.onLoad({ filter: /\/packages\/agent\/src\/cli\/.*\.ts$/ }, async ({ path }) => ({
      contents: importedAtOnce(await readFile(path, "utf8")),
      loader: "ts",
    }));
  },
};

const nodeCheck = `if (Number(process.versions.node.split(".")[0]) < 22) {
  console.error("kubectl-nodekeeper needs Node 22 or later; this is Node " + process.versions.node);
  process.exit(1);
}`;

/**
 * Builds `kubectl nodekeeper` as one file, which users copy into PATH without its extension. It is CommonJS, because
 * that needs no package.json next to it. It runs on the operator's Node, which may be older than the agent's. Also
 * writes kubectl_complete-nodekeeper, which kubectl finds in PATH and runs for completion.
 */
export async function buildKubectlPlugin(directory: string): Promise<Metafile[]> {
  const outfile = join(directory, "kubectl-nodekeeper.cjs");
  const page = await fleetPage();
  const metafile = await bundle({
    entryPoints: ["packages/agent/src/cli/kubectl/main.ts"],
    outfile,
    format: "cjs",
    target: "node22",
    sourcemap: false,
    plugins: [withoutUnused, atOnce],
    define: { ...common.define, NODEKEEPER_FLEET_PAGE: JSON.stringify(page.files) },
    // Only where it runs from source.
    logOverride: { "empty-import-meta": "silent" },
    banner: { js: ["#!/usr/bin/env node", nodeCheck].join("\n") },
  });
  await chmod(outfile, 0o755);
  const complete = '#!/bin/sh\nexec kubectl-nodekeeper __complete "$@"\n';
  await writeFile(join(directory, "kubectl_complete-nodekeeper"), complete, { mode: 0o755 });
  return [metafile, page.metafile];
}

/** The page of all nodes, as its files by name. */
async function fleetPage(): Promise<{ files: Record<string, string>; metafile: Metafile }> {
  return await withTemporaryDirectory(async (directory) => {
    const metafile = await buildFleetPage(directory);
    const names = (await readdir(directory)).sort();
    const texts = await Promise.all(names.map((name) => readFile(join(directory, name), "utf8")));
    return { files: Object.fromEntries(names.map((name, at) => [name, texts[at]!])), metafile };
  });
}

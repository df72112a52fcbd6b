import { readFileSync } from "node:fs";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { leanBuiltIns, leanPackages } from "./lean-modules.ts";
import { root } from "./programs.ts";

const { version } = JSON.parse(readFileSync(join(root, "packages/agent/package.json"), "utf8"));

/** Returns the build time in seconds: SOURCE_DATE_EPOCH of reproducible-builds.org, or 0 if it is not set. */
export function sourceDateEpoch(): number {
  return Number(process.env.SOURCE_DATE_EPOCH ?? 0);
}

/** What all bundles have in common. */
export const common: BuildOptions = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node24",
  sourcemap: true,
  // Names stay, for stack traces and metrics; Node keeps the text in memory, so that blanks cost on every node.
  minifyWhitespace: true,
  minifySyntax: true,
  // The map holds positions and names; sources would double its size and are in the repository.
  sourcesContent: false,
  legalComments: "none",
  logLevel: "warning",
  // packages/agent/src/cli/version.ts reads package.json only where this is absent.
  define: { NODEKEEPER_VERSION: JSON.stringify(version) },
};

// CommonJS dependencies within an ES module expect these.
const commonJsNames = [
  `import { createRequire as __createRequire } from "node:module";`,
  `const require = __createRequire(import.meta.url);`,
  `const __filename = import.meta.filename, __dirname = import.meta.dirname;`,
].join("");

/** Bundles a program, with all that it imports besides Node, as one ES module. */
export function buildProgram(entry: string, outfile: string, plugins: Plugin[] = []): Promise<Metafile> {
  return bundle({
    entryPoints: [entry],
    outfile,
    plugins: [leanBuiltIns, leanPackages, ...plugins],
    banner: { js: commonJsNames },
  });
}

/**
 * As `buildProgram`, but what is imported on demand is in files of its own beside `main.js` in the directory: Node keeps
 * the text of each file that it has loaded in memory.
 */
export function buildDividedProgram(entry: string, directory: string): Promise<Metafile> {
  return bundle({
    entryPoints: { main: entry },
    outdir: directory,
    splitting: true,
    chunkNames: "[name]-[hash]",
    plugins: [leanBuiltIns, leanPackages],
    banner: { js: commonJsNames },
  });
}

/** As `buildProgram`, but as a CommonJS script: the one form that a single executable of Node 24 starts. */
export function buildScript(entry: string, outfile: string, plugins: Plugin[] = []): Promise<Metafile> {
  return bundle({
    entryPoints: [entry],
    outfile,
    plugins: [leanBuiltIns, leanPackages, ...plugins],
    format: "cjs",
    // No map lies beside an executable.
    sourcemap: false,
    banner: { js: `const __scriptUrl = require("node:url").pathToFileURL(__filename).href;` },
    define: { ...common.define, "import.meta.url": "__scriptUrl" },
  });
}

/** Bundles with `common` and these options, and prints the sizes. */
export async function bundle(options: BuildOptions): Promise<Metafile> {
  const { metafile } = await build({ ...common, ...options, metafile: true });
  const programs = Object.keys(metafile.outputs).filter((path) => !path.endsWith(".map"));
  for (const path of programs.map((path) => join(root, path))) {
    await writeAscii(path);
    await report(path);
  }
  return metafile;
}

/**
 * Escapes the non-ASCII characters that esbuild leaves in regular expressions. If a text has a single one, Node stores
 * all of it with two bytes per character: 2.4 MB more on every node.
 */
async function writeAscii(path: string): Promise<void> {
  const text = await readFile(path, "utf8");
  const escaped = text.replaceAll(
    /[\u0080-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  if (escaped !== text) await writeFile(path, escaped);
}

/** Prints the size of a file that was made. */
export async function report(path: string): Promise<void> {
  const { size } = await stat(path);
  console.log(`${relative(root, path)} ${Math.ceil(size / 1024)} KiB`);
}

// Makes dist/, what is published and put into images: npm run build
import { chmod, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { writeDeclarations } from "./declarations.ts";
import { root } from "./run-command.ts";

const dist = join(root, "dist");

const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };

const common: BuildOptions = {
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
  // src/cli/version.ts reads package.json only where this is absent.
  define: { NODEKEEPER_VERSION: JSON.stringify(version) },
};

// CommonJS dependencies within an ES module expect these.
const commonJsNames = [
  `import { createRequire as __createRequire } from "node:module";`,
  `const require = __createRequire(import.meta.url);`,
  `const __filename = import.meta.filename, __dirname = import.meta.dirname;`,
].join("");

// Leaves packages to be imported where used, and only what is used: the SDK must not load prom-client for nothing.
const leavePackages: Plugin = {
  name: "leave packages",
  setup(bundle) {
    bundle.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === "entry-point" ? undefined : { path, external: true, sideEffects: false },
    );
  },
};

// What the bundle uses of them; a name that is missing here fails the build.
const httpNames: Readonly<Record<string, readonly string[]>> = {
  "node:http": [
    "Agent",
    "ClientRequest",
    "IncomingMessage",
    "Server",
    "ServerResponse",
    "createServer",
    "request",
  ],
  "node:https": ["Agent", "Server", "createServer", "request"],
};

/**
 * Takes Node's HTTP modules without importing them: an import reads every name that they export, WebSocket among them,
 * and for that Node loads its own fetch, 13 MB in each process.
 */
const leanHttp: Plugin = {
  name: "lean http",
  setup(bundle) {
    bundle.onResolve({ filter: /^node:https?$/ }, ({ path, kind }) =>
      kind === "import-statement" ? { path, namespace: "lean-http" } : undefined,
    );
    bundle.onLoad({ filter: /./, namespace: "lean-http" }, ({ path }) => ({
      contents: [
        `const module = process.getBuiltinModule(${JSON.stringify(path)});`,
        "export default module;",
        `export const { ${httpNames[path]!.join(", ")} } = module;`,
      ].join("\n"),
    }));
  },
};

await rm(dist, { recursive: true, force: true });
await mkdir(join(dist, "types"), { recursive: true });
await Promise.all([
  buildCli(),
  buildLibrary("sdk/index.ts", "sdk.js"),
  buildLibrary("src/devcluster/index.ts", "devcluster.js"),
  // What `nodekeeper dev` runs as the sample plugins.
  buildLibrary("examples/reporter/main.ts", "example-reporter.js"),
  buildLibrary("examples/driver/main.ts", "example-driver.js"),
  buildLibrary("examples/eviction/main.ts", "example-eviction.js"),
  writeDeclarations(["sdk/index.ts", "src/devcluster/index.ts"], join(dist, "types")),
]);
await rm(join(dist, "types/tsconfig.json"));
for (const name of [
  "nodekeeper.js",
  "sdk.js",
  "devcluster.js",
  "example-reporter.js",
  "example-driver.js",
  "example-eviction.js",
]) {
  const { size } = await stat(join(dist, name));
  console.log(`dist/${name} ${Math.ceil(size / 1024)} KiB`);
}

/** The agent and its commands in one file that needs Node alone. */
async function buildCli(): Promise<void> {
  const entry = "src/main.ts";
  const hasShebang = (await readFile(join(root, entry), "utf8")).startsWith("#!");
  const outfile = join(dist, "nodekeeper.js");
  await build({
    ...common,
    entryPoints: [entry],
    outfile,
    plugins: [leanHttp],
    banner: { js: `${hasShebang ? "" : "#!/usr/bin/env node\n"}${commonJsNames}` },
  });
  await writeAscii(outfile);
  await chmod(outfile, 0o755);
}

/**
 * Escapes what esbuild leaves of other letters, in regular expressions. One letter beyond ASCII, and Node keeps the whole
 * text with two bytes a letter: 2.4 MB more on every node.
 */
async function writeAscii(path: string): Promise<void> {
  const text = await readFile(path, "utf8");
  const escaped = text.replaceAll(
    /[\u0080-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  if (escaped !== text) await writeFile(path, escaped);
}

/** A part that others import; it shares the package's dependencies with them. */
async function buildLibrary(entry: string, name: string): Promise<void> {
  await build({ ...common, entryPoints: [entry], outfile: join(dist, name), plugins: [leavePackages] });
}

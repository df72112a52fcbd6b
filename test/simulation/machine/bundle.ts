import { readFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";
import { countedSource } from "./counted-sources.ts";

/** A change of one place of a source file. */
export interface SourceChange {
  /** Path below the repository. */
  file: string;
  /** Text that occurs once in the file. */
  from: string;
  to: string;
}

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "../../..");
const edges = join(here, "edges");

// The edges of the agent, and what takes their place.
const replaced: Readonly<Record<string, string>> = {
  "node:crypto": "crypto.ts",
  "node:fs": "fs.ts",
  "node:fs/promises": "fs-promises.ts",
  "node:http": "http.ts",
  "node:https": "http.ts",
  "node:net": "net.ts",
  "node:sqlite": "sqlite.ts",
  "node:timers/promises": "timers-promises.ts",
  "@grpc/grpc-js": "grpc-js.ts",
  "nice-grpc": "nice-grpc.ts",
};

/**
 * Bundles the agent and the world around it, with the edges of the machine in the place of sockets, files, databases and
 * chance.
 * @param changes made to the sources on the way, as in the table of mutations
 */
export async function bundleWorld(outfile: string, changes: readonly SourceChange[] = []): Promise<void> {
  await build({
    entryPoints: [join(here, "../simulate.ts")],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node24",
    sourcemap: "linked",
    logLevel: "error",
    absWorkingDir: root,
    plugins: [edgesPlugin, sourcesPlugin(changes)],
  });
}

const edgesPlugin: Plugin = {
  name: "edges",
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, importer }) => {
      const edge = replaced[path];
      if (edge && !importer.startsWith(edges)) return { path: join(edges, edge) };
      if (path.startsWith("@nodekeeper/")) return undefined;
      return { path, external: true };
    });
    onResolve({ filter: /\/(http2-session|system-clock)\.ts$/ }, ({ path }) => ({
      path: join(edges, basename(path)),
    }));
  },
};

/** Changes the sources, and lets what they create be counted. */
function sourcesPlugin(changes: readonly SourceChange[]): Plugin {
  return {
    name: "sources",
    setup({ onLoad }) {
      onLoad({ filter: /\/packages\/[^/]+\/src\/.*\.ts$/ }, async ({ path }) => {
        const file = relative(root, path);
        let contents = await readFile(path, "utf8");
        for (const change of changes.filter((each) => each.file === file))
          contents = changed(contents, change);
        return {
          contents: isOfAgent(file) ? countedSource(contents, placeOf(file)) : contents,
          loader: "ts",
        };
      });
    },
  };
}

function changed(contents: string, { file, from, to }: SourceChange): string {
  const parts = contents.split(from);
  if (parts.length === 2) return parts.join(to);
  throw new Error(`${file}: ${parts.length - 1} times, not once: ${JSON.stringify(from)}`);
}

function isOfAgent(file: string): boolean {
  return /^packages\/(agent|api|core)\//.test(file) && !file.includes("/testing/") && !file.includes("/gen/");
}

/** Returns "eviction/ledger.ts" for a module of the agent, and "core/lib/clock.ts" for another package. */
function placeOf(file: string): string {
  return file.replace(/^packages\/(?:agent\/src\/)?/, "").replace("/src/", "/");
}

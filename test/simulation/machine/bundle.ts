import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

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
    plugins: [edgesPlugin, changesPlugin(changes)],
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
    onResolve({ filter: /\/http2-session\.ts$/ }, () => ({ path: join(edges, "http2-session.ts") }));
  },
};

function changesPlugin(changes: readonly SourceChange[]): Plugin {
  return {
    name: "changes",
    setup({ onLoad }) {
      for (const { file, from, to } of changes) {
        const path = join(root, file);
        const filter = new RegExp(`${path.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);
        onLoad({ filter }, async () => {
          const contents = await readFile(path, "utf8");
          const parts = contents.split(from);
          if (parts.length !== 2)
            throw new Error(`${file}: ${parts.length - 1} times, not once: ${JSON.stringify(from)}`);
          return { contents: parts.join(to), loader: "ts" };
        });
      }
    },
  };
}

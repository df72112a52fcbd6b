import { cp, mkdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { problemGroups } from "@nodekeeper/api/errors";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { root } from "./programs.ts";

const source = "packages/page/src";

/** Stylesheets that are loaded with the code that needs them: parts/styles.ts. */
const lazyStyles = [
  "overlays/overlays",
  ...["now", "plugins", "pod", "resources", "what-if"].map((view) => `views/${view}/${view}`),
];

/** Where `npm run page` puts it, and where an agent that runs from source finds it. */
export const pageDirectory = join(root, "packages/page/dist");

// The page shows the texts of problems by their ids; it needs neither the classes of errors nor their names.
const problemsAsData: Plugin = {
  name: "problems as data",
  setup(bundle) {
    bundle.onLoad({ filter: /\/api\/src\/error-catalogue\/index\.ts$/ }, () => {
      const all = problemGroups.flatMap(({ problems }) => Object.values(problems));
      const texts = all.map(({ id, title, cause, remedy }) => [id, { id, title, cause, remedy }]);
      const byId = JSON.stringify(Object.fromEntries(texts));
      return { contents: `const byId = ${byId};\nexport const findProblem = (id) => byId[id];` };
    });
  },
};

const common = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  platform: "browser",
  plugins: [problemsAsData],
  target: "es2023",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
} as const satisfies BuildOptions;

/** Bundles the page, as the files that the agent serves, into `directory`. Imports of Node's modules fail. */
export async function buildPage(directory: string): Promise<Metafile> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const [{ metafile }] = await Promise.all([
    build({
      ...common,
      entryPoints: [
        { in: join(source, "main.tsx"), out: "main" },
        { in: join(source, "views/what-if/worker.ts"), out: "what-if-worker" },
        ...lazyStyles.map((path) => ({ in: join(source, `${path}.css`), out: basename(path) })),
      ],
      outdir: directory,
      // What a view alone needs is loaded with it.
      splitting: true,
      chunkNames: "[name]-[hash]",
    }),
    ...["index.html", "icon.svg"].map((name) => cp(join(root, source, name), join(directory, name))),
  ]);
  return metafile;
}

/**
 * Bundles the page of all nodes, which `kubectl nodekeeper page` serves, into `directory`. One script and one stylesheet,
 * because the plugin is one file that holds them.
 */
export async function buildFleetPage(directory: string): Promise<Metafile> {
  await mkdir(directory, { recursive: true });
  const [{ metafile }] = await Promise.all([
    build({
      ...common,
      entryPoints: [{ in: join(source, "fleet/main.tsx"), out: "fleet" }],
      outdir: directory,
      // An operator's machine reads them from the plugin's text.
      charset: "ascii",
    }),
    cp(join(root, source, "fleet/fleet.html"), join(directory, "fleet.html")),
    cp(join(root, source, "icon.svg"), join(directory, "icon.svg")),
  ]);
  return metafile;
}

/** The files that `buildPage` made, by their paths from the repository's root. */
export type PageOutputs = Metafile["outputs"];

/** Those that a browser loads for a view: the page with its styles, the view's part, and what these import. */
export function viewFiles(outputs: PageOutputs, view: string): string[] {
  const found = new Set(["index.html"]);
  const add = (path: string) => {
    if (found.has(path)) return;
    found.add(path);
    const { imports, cssBundle } = outputs[path]!;
    for (const each of imports) if (each.kind === "import-statement") add(each.path);
    if (cssBundle) add(cssBundle);
  };
  for (const [path, { entryPoint }] of Object.entries(outputs))
    if (entryPoint === `${source}/main.tsx` || entryPoint?.startsWith(`${source}/views/${view}/`)) add(path);
  return [...found];
}

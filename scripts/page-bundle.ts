import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { build, type Metafile, type Plugin } from "esbuild";
import { root } from "./run-command.ts";

const source = "packages/page/src";

/** Where `npm run page` puts it, and where an agent that runs from source finds it. */
export const pageFolder = join(root, "packages/page/dist");

// Node's modules and packages for it are named by files of the agent of which the page uses nothing, and are left out with
// these: what remains is refused below.
const leaveForeign: Plugin = {
  name: "leave foreign",
  setup(bundle) {
    bundle.onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === "entry-point" || /^(preact|uplot|@nodekeeper)(\/|$)/.test(path)
        ? undefined
        : { path, external: true, sideEffects: false },
    );
  },
};

/** Bundles the page, as the files that the agent serves, into `folder`. Node's modules in it fail the build. */
export async function buildPage(folder: string): Promise<Metafile> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const [{ metafile }] = await Promise.all([
    build({
      absWorkingDir: root,
      entryPoints: [
        { in: join(source, "main.tsx"), out: "main" },
        { in: join(source, "views/what-if/worker.ts"), out: "what-if-worker" },
      ],
      outdir: folder,
      bundle: true,
      // What a view alone needs is loaded with it.
      splitting: true,
      chunkNames: "[name]-[hash]",
      format: "esm",
      platform: "browser",
      plugins: [leaveForeign],
      target: "es2023",
      jsx: "automatic",
      jsxImportSource: "preact",
      minify: true,
      legalComments: "none",
      logLevel: "warning",
      metafile: true,
    }),
    ...["index.html", "icon.svg"].map((name) => cp(join(root, source, name), join(folder, name))),
  ]);
  refuseForeign(metafile);
  return metafile;
}

// A browser can't load what the agent does not serve.
function refuseForeign({ outputs }: Metafile): void {
  const foreign = Object.entries(outputs).flatMap(([file, { imports }]) =>
    imports.filter(({ external }) => external).map(({ path }) => `${file} imports ${path}`),
  );
  if (foreign.length > 0) throw new Error(`the page needs more than its own files: ${foreign.join(", ")}`);
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

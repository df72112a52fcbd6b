import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { build, type Metafile } from "esbuild";
import { root } from "./run-command.ts";

const source = "packages/page/src";

/** Where `npm run page` puts it, and where an agent that runs from source finds it. */
export const pageFolder = join(root, "packages/page/dist");

/** Bundles the page, as the files that the agent serves, into `folder`. Node's modules in it fail the build. */
export async function buildPage(folder: string): Promise<Metafile> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const [{ metafile }] = await Promise.all([
    build({
      absWorkingDir: root,
      entryPoints: [join(source, "main.tsx")],
      outdir: folder,
      bundle: true,
      // What a view alone needs is loaded with it.
      splitting: true,
      chunkNames: "[name]-[hash]",
      format: "esm",
      platform: "browser",
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
  return metafile;
}

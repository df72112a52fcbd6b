import { glob, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root, runCommand } from "./run-command.ts";

/** Writes the types of `entries` (paths from the root), and of what they import, into `folder`, laid out as the sources are. */
export async function writeDeclarations(entries: string[], folder: string): Promise<void> {
  // A configuration of its own: tsc takes no file names beside -p, and the project's own has tests in it.
  const project = join(folder, "tsconfig.json");
  await writeFile(
    project,
    JSON.stringify({
      extends: join(root, "tsconfig.json"),
      compilerOptions: {
        noEmit: false,
        declaration: true,
        emitDeclarationOnly: true,
        stripInternal: true,
        rootDir: root,
        outDir: folder,
        typeRoots: [join(root, "node_modules/@types")],
      },
      include: [],
      files: entries.map((entry) => join(root, entry)),
    }),
  );
  const { ok, output } = await runCommand("tsc", ["-p", project]);
  if (!ok) throw new Error(`types of ${entries.join(", ")}:\n${output}`);
  for await (const file of glob("**/*.d.ts", { cwd: folder })) {
    const path = join(folder, file);
    await writeFile(path, withScriptExtensions(await readFile(path, "utf8")));
  }
}

// Sources import "./x.ts"; a consumer's compiler finds x.d.ts by "./x.js" in every version and setting.
function withScriptExtensions(declarations: string): string {
  return declarations.replace(/((?:\bfrom|\bimport)\s*\(?\s*["']\.{1,2}\/[^"']+)\.ts(["'])/g, "$1.js$2");
}

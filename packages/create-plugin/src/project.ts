import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Choices } from "./arguments.ts";
import { compilerOptions, ignoredFiles, manifestOf } from "./manifest.ts";
import { readmeOf } from "./readme.ts";
import { sampleNames, templates } from "./templates.ts";
import { UsageError } from "./usage-error.ts";

/** Where the files of templates are, and the version of the packages that a project depends on. */
export interface Source {
  root: string;
  version: string;
}

/** Writes the project. Throws `UsageError` where the folder has files: nothing is overwritten. */
export async function writeProject(choices: Choices, { root, version }: Source): Promise<void> {
  const { language, kind, name } = choices;
  const folder = resolve(choices.folder);
  await checkEmpty(folder);
  await mkdir(folder, { recursive: true });
  const { named, copied } = templates[language][kind];
  for (const [to, from] of Object.entries(copied))
    await cp(join(root, from), join(folder, to), { recursive: true });
  for (const [to, from] of Object.entries(named)) {
    const text = await readFile(join(root, from), "utf8");
    await write(join(folder, to), text.replaceAll(sampleNames[kind], name));
  }
  await write(join(folder, "package.json"), json(manifestOf(choices, version)));
  await write(join(folder, ".gitignore"), `${ignoredFiles(choices).join("\n")}\n`);
  await write(join(folder, "README.md"), readmeOf(choices));
  if (language === "typescript")
    await write(join(folder, "tsconfig.json"), json({ compilerOptions, include: ["*.ts"] }));
}

async function checkEmpty(folder: string): Promise<void> {
  const entries = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw new UsageError(`${folder} can't be used: ${error.message}`);
  });
  if (entries.length > 0)
    throw new UsageError(
      `${folder} is not empty (${entries.slice(0, 3).join(", ")}): nothing is overwritten`,
    );
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { flag: "wx" });
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

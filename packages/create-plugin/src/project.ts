import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Choices } from "./arguments.ts";
import { deploymentOf } from "./deployment.ts";
import { compilerOptions, ignoredFiles, manifestOf } from "./manifest.ts";
import { readmeOf } from "./readme.ts";
import { isTemplateFile, sampleNames, templates } from "./templates.ts";
import { UsageError } from "./usage-error.ts";

/** Root directory of the templates' files, and version of the packages on which a project depends. */
export interface Source {
  root: string;
  version: string;
}

/** Writes the project. Throws `UsageError` if the directory is not empty. Never overwrites files. */
export async function writeProject(choices: Choices, { root, version }: Source): Promise<void> {
  const { language, kind, name } = choices;
  const directory = resolve(choices.directory);
  await checkEmpty(directory);
  await mkdir(directory, { recursive: true });
  const { named, copied } = templates[language][kind];
  for (const [to, from] of Object.entries(copied))
    await cp(join(root, from), join(directory, to), { recursive: true, filter: isTemplateFile });
  for (const [to, from] of Object.entries(named)) {
    const text = await readFile(join(root, from), "utf8");
    const own = text.replaceAll(sampleNames[kind], name).replaceAll("../../sdk-", "./sdk-");
    await write(join(directory, to), own);
  }
  await write(join(directory, "package.json"), json(manifestOf(choices, version)));
  await write(join(directory, ".gitignore"), `${ignoredFiles(choices).join("\n")}\n`);
  await write(join(directory, "README.md"), readmeOf(choices));
  for (const [path, text] of Object.entries(deploymentOf(choices))) await write(join(directory, path), text);
  if (language === "typescript")
    await write(join(directory, "tsconfig.json"), json({ compilerOptions, include: ["*.ts"] }));
}

async function checkEmpty(directory: string): Promise<void> {
  const entries = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw new UsageError(`${directory} can't be used: ${error.message}`);
  });
  if (entries.length > 0)
    throw new UsageError(
      `${directory} is not empty (${entries.slice(0, 3).join(", ")}): nothing is overwritten`,
    );
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text, { flag: "wx" });
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

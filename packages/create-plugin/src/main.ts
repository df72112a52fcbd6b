import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArguments, usage } from "./arguments.ts";
import { type Source, writeProject } from "./project.ts";
import { completeArguments } from "./questions.ts";
import { nextSteps } from "./readme.ts";
import { UsageError } from "./usage-error.ts";

try {
  const args = parseArguments(process.argv.slice(2));
  if (args.help) process.stdout.write(usage);
  else {
    const choices = await completeArguments(args, { input: process.stdin, output: process.stdout });
    await writeProject(choices, await source());
    const steps = nextSteps(choices).map((line) => `  ${line}\n`);
    process.stdout.write(`Created ${choices.name} in ${choices.directory}. Next:\n\n${steps.join("")}`);
  }
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`create-plugin: ${error.message}\n`);
  process.exitCode = 2;
}

// In the published package, the files are next to the bundle. From source, they are in the repository.
async function source(): Promise<Source> {
  const isSource = import.meta.url.endsWith(".ts");
  const manifest = new URL(isSource ? "../package.json" : "./package.json", import.meta.url);
  const { version } = JSON.parse(await readFile(manifest, "utf8")) as { version: string };
  return { root: fileURLToPath(new URL(isSource ? "../../.." : "./templates", import.meta.url)), version };
}

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeProject } from "../../../packages/create-plugin/src/project.ts";
import { readMarkdown } from "../../../scripts/docs/markdown.ts";
import { pathOf } from "./parts.ts";

const root = join(import.meta.dirname, "../../..");

/** The languages of docs/first-driver.md in which the driver is a project of the template. */
export const coffeeLanguages = ["go", "python"] as const;
export type CoffeeLanguage = (typeof coffeeLanguages)[number];

export interface CoffeeProject {
  directory: string;
  /** Variables of its commands. */
  env: Record<string, string>;
  /** Of its package.json. */
  scripts: Record<string, string>;
}

const programs = { go: ["main.go", "main_test.go"], python: ["main.py", "test_main.py"] };

/** Makes the project of docs/first-driver.md in a directory: that of the template, with the page's programs. */
export async function writeCoffeeProject(
  language: CoffeeLanguage,
  directory: string,
): Promise<CoffeeProject> {
  const choices = { kind: "driver", name: "coffee.example.com", language, directory } as const;
  await writeProject(choices, { root, version: "0.1.0" });
  for (const file of ["plugin.test.mjs", "start-plugin.mjs"]) rmSync(join(directory, file));
  const { blocks } = readMarkdown(readFileSync(join(root, "docs/first-driver.md"), "utf8"));
  const texts = blocks.filter((block) => block.language === language).map(({ text }) => text);
  const files = programs[language];
  if (texts.length !== files.length) throw new Error(`${texts.length} programs in ${language} on the page`);
  for (const [index, file] of files.entries()) writeFileSync(join(directory, file), texts[index]!);
  if (language === "python") writeInterpreter(directory);
  const { scripts } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
  // As test/e2e/prepare builds programs with the same packages: Go's cache has them.
  const env = { CGO_ENABLED: "0", GOFLAGS: "-trimpath", GOWORK: "off" };
  return { directory, scripts, env: language === "go" ? env : {} };
}

// With the sample driver's packages in place of those that the project's build installs: requirements.txt is the same.
function writeInterpreter(directory: string): void {
  const path = `${join(directory, "sdk-python")}:${pathOf("pythonSampleDriver")}`;
  const program = `#!/bin/sh\nexec env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${path} python3 "$@"\n`;
  mkdirSync(join(directory, ".venv/bin"), { recursive: true });
  writeFileSync(join(directory, ".venv/bin/python"), program, { mode: 0o755 });
}

import { execFile, spawn } from "node:child_process";
import { chmodSync, copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CodeBlock, readMarkdown } from "../../scripts/docs/markdown.ts";
import { type BlockRunner, commandBlocks, runnerOf } from "./code-blocks.ts";
import { isAsShown } from "./doc-output.ts";

export const root = join(import.meta.dirname, "../..");

/** How commands of the documentation are run. */
export interface DocShell {
  /** Where they run; each page has a directory of its own, in which its blocks find what earlier ones wrote. */
  directory: string;
  /** Environment besides PATH. */
  env: Record<string, string>;
  /** What stands in the text for what a reader has: `[/worker-1/g, "dev-node"]`. */
  replacements: readonly (readonly [written: RegExp, meant: string])[];
  /** Programs by name, as scripts of bash: they precede those of the machine. */
  programs: Record<string, string>;
  /** Words in front of bash, as of a program that changes its namespaces and becomes it. */
  enter?: readonly string[];
}

/** Pages with blocks for the runner, by path from the repository's root. */
export function pagesFor(kind: BlockRunner["kind"]): string[] {
  const pages = globSync("{*.md,{docs,packages,examples,deploy}/**/*.md}", { cwd: root });
  const here = pages.filter((page) => !/(^|\/)(node_modules|dist)\//.test(page));
  return here.filter((page) => blocksOf(page).some((block) => runnerOf(block)?.kind === kind)).sort();
}

/** The blocks of commands of a page that `wanted` takes; `text` is another form of the page. */
export function blocksOf(
  page: string,
  wanted: (runner: BlockRunner) => boolean = () => true,
  text = readFileSync(join(root, page), "utf8"),
): CodeBlock[] {
  return commandBlocks(text).filter((block) => {
    const runner = runnerOf(block);
    return runner !== undefined && wanted(runner);
  });
}

/** Writes the files that a page shows: blocks of YAML whose first line is a comment with a name, such as `# node.yaml`. */
export function writeFilesOf(page: string, directory: string): void {
  for (const { language, text } of readMarkdown(readFileSync(join(root, page), "utf8")).blocks) {
    const [, name] = /^# ([\w-]+\.yaml)\n/.exec(text) ?? [];
    if (language === "yaml" && name) writeFileSync(join(directory, name), text);
  }
}

/** Makes a shell's directory and programs. */
export function prepareShell({ directory, programs }: DocShell): void {
  mkdirSync(join(directory, "bin"), { recursive: true });
  for (const [name, script] of Object.entries(programs)) {
    const path = join(directory, "bin", name);
    writeFileSync(path, `#!/usr/bin/env bash\n${script}\n`);
    chmodSync(path, 0o755);
  }
}

/**
 * Runs a block in `cwd`. Returns how it differs from the page; empty if it does not. A `sh` block must succeed, and
 * stops at the first command that fails. All commands of a `console` block run, and must print what the page shows.
 */
export async function runBlock(block: CodeBlock, cwd: string, shell: DocShell): Promise<string[]> {
  const text = meantBy(block, shell);
  if (block.language !== "console") {
    const { status, output } = await runCommands(`set -eu -o pipefail\n${text}`, cwd, shell);
    return status === 0 ? [] : [`status ${status} of:\n${text}\n${output}`];
  }
  const problems: string[] = [];
  for (const [, command, shown] of text.matchAll(/^\$ (.*)\n?((?:(?!\$ ).*(?:\n|$))*)/gm)) {
    const { output } = await runCommands(command!, cwd, shell);
    if (isAsShown(shown!, output)) continue;
    problems.push(`${command} prints:\n${output}\ninstead of:\n${shown}`);
  }
  return problems;
}

/** A block that stays in the foreground of a terminal. */
export interface ForegroundBlock extends AsyncDisposable {
  /** What it wrote so far. */
  output(): string;
}

/** Starts a block of `sh` in a terminal of its own. Disposed of, it ends as on Ctrl-C. */
export function startBlock(block: CodeBlock, cwd: string, shell: DocShell): ForegroundBlock {
  const [program, ...words] = bash(`set -eu -o pipefail\n${meantBy(block, shell)}`, cwd, shell);
  const child = spawn(program!, words, { env: environmentOf(shell), detached: true });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (output += bytes));
  const ended = new Promise((resolve) => child.once("close", resolve));
  return {
    output: () => output,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) process.kill(-child.pid!, "SIGINT");
      await ended;
    },
  };
}

function meantBy({ text }: CodeBlock, { replacements }: Pick<DocShell, "replacements">): string {
  return replacements.reduce((all, [written, meant]) => all.replaceAll(written, meant), text);
}

function environmentOf({ directory, env }: DocShell) {
  return { ...env, PATH: `${join(directory, "bin")}:${process.env.PATH}` };
}

// A program that enters another mount namespace leaves its directory.
function bash(script: string, cwd: string, { enter = [] }: DocShell): string[] {
  return [...enter, "bash", "-c", `cd '${cwd}'\n${script}`];
}

/** Runs commands of bash; `output` has both streams. */
export function runCommands(
  script: string,
  cwd: string,
  shell: DocShell,
): Promise<{ status: number; output: string }> {
  const [program, ...words] = bash(script, cwd, shell);
  return new Promise((resolve) => {
    const options = { env: environmentOf(shell), timeout: 500_000, maxBuffer: 64 * 2 ** 20 };
    execFile(program!, words, options, (error, stdout, stderr) => {
      resolve({ status: error ? Number(error.code ?? 1) : 0, output: stdout + stderr });
    });
  });
}

/** A copy of a file of the repository in `directory`, by the same name. */
export function copyInto(directory: string, path: string): void {
  copyFileSync(join(root, path), join(directory, path.split("/").at(-1)!));
}

// Commands in the documentation: each block of them is run by a test, or states why it can't be.
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, join, normalize } from "node:path";
import { type CodeBlock, readMarkdown } from "../../scripts/docs/markdown.ts";

/** What runs a block, by its info string: ```` ```sh run=dev ````. */
export type BlockRunner =
  /** test/heavy/docs-commands.test.ts, beside a development cluster. */
  | { kind: "dev" }
  /** Scripts and test files of the repository, which exist; .ci/run runs them. */
  | { kind: "repository" }
  /** `run=test/….test.ts`: that test reads the page and runs the block. */
  | { kind: "test"; path: string }
  /** `not-run="why"`. The site shows the reason. */
  | { kind: "none"; reason: string };

const SHELL = /^(sh|bash|shell|zsh|console)$/;

/** The blocks of commands in a page: `sh`, or `console`, where `$ ` precedes commands and their output follows. */
export function commandBlocks(text: string): CodeBlock[] {
  return readMarkdown(text).blocks.filter(({ language }) => SHELL.test(language));
}

/** Returns what runs a block. Undefined if its info string has no valid `run` or `not-run`. */
export function runnerOf({ info }: CodeBlock): BlockRunner | undefined {
  const [, name] = /^run=(\S+)$/.exec(info) ?? [];
  if (name === "dev" || name === "repository") return { kind: name };
  if (name?.endsWith(".test.ts")) return { kind: "test", path: name };
  const [, reason] = /^not-run="(.+)"$/.exec(info) ?? [];
  return reason ? { kind: "none", reason } : undefined;
}

/** The commands of a block of `sh`: lines, joined where they end in a backslash, without comments and empty lines. */
function commandsOf({ text }: CodeBlock): string[] {
  const lines = text.replace(/\\\n\s*/g, " ").split("\n");
  return lines.map((line) => line.replace(/(^|\s)#.*$/, "").trim()).filter((line) => line !== "");
}

/**
 * Returns the problems of command blocks in `files`, one line each: blocks without a runner, runners that do not exist,
 * and blocks without a language, which may be commands. Indented code has no language.
 */
export async function findBlockProblems(root: string, files: ReadonlyMap<string, string>): Promise<string[]> {
  const scripts = await scriptsOf(root);
  const problems: string[] = [];
  for (const [path, text] of files) {
    for (const { line } of readMarkdown(text).blocks.filter(({ language }) => language === ""))
      problems.push(
        `${path}:${line}: a block without a language: sh or console for commands, text for output`,
      );
    for (const block of commandBlocks(text)) {
      const found = await problemsOf(root, path, block, scripts);
      problems.push(...found.map((problem) => `${path}:${block.line}: ${problem}`));
    }
  }
  return problems;
}

async function problemsOf(root: string, path: string, block: CodeBlock, scripts: Scripts) {
  const runner = runnerOf(block);
  if (!runner) {
    return [
      'commands without a runner: expected run=dev, run=repository, run=test/….test.ts or not-run="why"',
    ];
  }
  if (runner.kind === "test") {
    const test = await readFile(join(root, runner.path), "utf8").catch(() => undefined);
    if (test === undefined) return [`there is no ${runner.path}`];
    return test.includes(basename(path)) ? [] : [`${runner.path} does not read ${basename(path)}`];
  }
  if (runner.kind !== "repository") return [];
  const found = await Promise.all(
    commandsOf(block).map((command) => repositoryProblem(root, command, scripts)),
  );
  return found.filter((problem) => problem !== undefined);
}

// npm's own commands, scripts of package.json, suites of the bench, and tests by their paths.
async function repositoryProblem(root: string, line: string, scripts: Scripts) {
  for (const command of line.split(/\s*(?:&&|\|)\s*/)) {
    const words = command.split(/\s+/);
    const [program, first = ""] = words;
    if (program === "npm") {
      const script = first === "run" ? words.slice(2).find((word) => !word.startsWith("-")) : first;
      if (first === "ci") continue;
      if (!script || !Object.hasOwn(scripts, script)) return `package.json has no script ${script}`;
      const unknown = await unknownOption(root, scripts[script]!, words);
      if (unknown) return `${script} has no option ${unknown}`;
      const suite = script === "bench" ? words[words.indexOf("--") + 1] : undefined;
      if (suite && !(await exists(join(root, "bench", `${suite}.ts`))))
        return `there is no bench/${suite}.ts`;
      continue;
    }
    if (program === "npx" && first === "vitest") {
      for (const word of words.slice(3)) {
        // A name that the reader chooses, or the start of files' names.
        if (word.startsWith("-") || word.includes("<")) continue;
        const directory = dirname(normalize(word));
        if (!(await exists(join(root, directory)))) return `there is no ${directory} for ${word}`;
      }
      continue;
    }
    if (program === "grep" || program === "head") continue;
    return `"${command}" is no command of the repository`;
  }
  return undefined;
}

/** The commands of package.json's scripts by name. */
type Scripts = Readonly<Record<string, string>>;

async function scriptsOf(root: string): Promise<Scripts> {
  const file = await readFile(join(root, "package.json"), "utf8").catch(() => "{}");
  return JSON.parse(file).scripts ?? {};
}

// The first option after "--" that the script's file does not mention.
async function unknownOption(root: string, command: string, words: readonly string[]) {
  const [, file] = /^node (\S+\.ts)$/.exec(command) ?? [];
  if (!file) return undefined;
  const text = await readFile(join(root, file), "utf8");
  const options = words.slice(words.indexOf("--") + 1).filter((word) => /^--(?!help$)\w/.test(word));
  return options.find((option) => !new RegExp(`\\b${option.slice(2)}\\b`).test(text));
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

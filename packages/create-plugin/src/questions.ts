import { createInterface, type Interface } from "node:readline/promises";
import { type Arguments, type Choices, checkName, defaultName } from "./arguments.ts";
import { kinds, languages } from "./templates.ts";
import { UsageError } from "./usage-error.ts";

export interface Terminal {
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  output: NodeJS.WritableStream;
}

/** Prompts for missing arguments. Throws `UsageError`, naming the argument, if the input is not a terminal. */
export async function completeArguments(args: Arguments, { input, output }: Terminal): Promise<Choices> {
  const lines = input.isTTY ? createInterface({ input, output }) : undefined;
  try {
    const kind = args.kind ?? (await choose(lines, "--kind", kinds));
    const language = args.language ?? (await choose(lines, "--language", languages));
    const directory =
      args.directory ?? (await ask(lines, "directory", "Directory", args.name ?? `my-${kind}`));
    const suggested = defaultName(directory, kind);
    const name = args.name ?? (lines ? await ask(lines, "--name", "Name", suggested) : suggested);
    checkName(name);
    return { directory, kind, language, name };
  } finally {
    lines?.close();
  }
}

async function choose<T extends string>(
  lines: Interface | undefined,
  argument: string,
  known: readonly T[],
): Promise<T> {
  for (;;) {
    const list = known.map((each, index) => `${index + 1} ${each}`).join(", ");
    const answer = await ask(lines, `${argument} ${known.join("|")}`, `${argument.slice(2)} (${list})`, "1");
    const found = known.find((each, index) => each === answer || String(index + 1) === answer);
    if (found) return found;
  }
}

async function ask(
  lines: Interface | undefined,
  argument: string,
  question: string,
  suggested: string,
): Promise<string> {
  if (!lines) throw new UsageError(`${argument} is missing, and there is no terminal to ask on`);
  // Ctrl-D closes the terminal. Ctrl-C rejects the question.
  const ended = Promise.withResolvers<never>();
  const end = () => ended.reject(new UsageError("no answer: nothing was created"));
  lines.once("close", end);
  try {
    const answer = lines.question(`${question} [${suggested}]: `).catch(() => ended.promise);
    return (await Promise.race([answer, ended.promise])).trim() || suggested;
  } finally {
    lines.off("close", end);
  }
}

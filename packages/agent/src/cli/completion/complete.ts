import { plainText } from "@nodekeeper/api/text";
import type { Argument, Command, Option } from "commander";
import type { Output } from "../output.ts";

/** A completion of a word on a command line. */
export interface Candidate {
  word: string;
  about: string;
}

export interface Completion {
  candidates: Candidate[];
  /** Whether the word may be a file path. */
  isFile: boolean;
}

/**
 * Returns the candidates for the last of `words` on a program's command line, from the declarations of its commands.
 * @param words the words after the program's name; the last is the one being typed and may be empty
 */
export function complete(program: Command, words: readonly string[]): Completion {
  const typed = words.at(-1) ?? "";
  let command = program;
  let expecting: Option | undefined;
  let positionals = 0;
  for (const word of words.slice(0, -1)) {
    if (expecting) expecting = undefined;
    else if (word.startsWith("-")) expecting = valueOption(command, word);
    else {
      const found = command.commands.find((each) => each.name() === word);
      if (found) command = found;
      else positionals++;
    }
  }
  if (expecting) return startingWith(typed, ofValue(expecting.argChoices, expecting.flags));
  const [flag = "", value] = typed.split(/=(.*)/s);
  if (value !== undefined) {
    const option = optionsOf(command).find(({ long }) => long === flag);
    const { candidates, isFile } = ofValue(option?.argChoices, option?.flags ?? "");
    const words = candidates.map(({ word, about }) => ({ word: `${flag}=${word}`, about }));
    return startingWith(typed, { candidates: words, isFile });
  }
  if (typed.startsWith("-")) return startingWith(typed, { candidates: flagsOf(command), isFile: false });
  const argument: Argument | undefined = (command.registeredArguments ?? [])[positionals];
  const { candidates, isFile } = ofValue(argument?.argChoices, argument?.name() ?? "");
  return startingWith(typed, { candidates: [...commandsOf(command), ...candidates], isFile });
}

// Returns the option if its value is the next word.
function valueOption(command: Command, word: string): Option | undefined {
  if (word.includes("=")) return undefined;
  const option = optionsOf(command).find(({ long, short }) => word === long || word === short);
  return option?.required || option?.optional ? option : undefined;
}

// Options of parent commands may follow a subcommand.
function optionsOf(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent ? optionsOf(command.parent) : [])].filter(
    ({ hidden }) => !hidden,
  );
}

function flagsOf(command: Command): Candidate[] {
  const flags = optionsOf(command).map(({ long, description }) => ({ word: long ?? "", about: description }));
  return [...flags, { word: "--help", about: "display help for command" }];
}

function commandsOf(command: Command): Candidate[] {
  return command.commands.map((each) => ({ word: each.name(), about: each.description() }));
}

function ofValue(choices: readonly string[] | undefined, placeholder: string): Completion {
  return {
    candidates: (choices ?? []).map((word) => ({ word, about: "" })),
    isFile: /\bfile\b|\bpath\b/.test(placeholder),
  };
}

function startingWith(typed: string, { candidates, isFile }: Completion): Completion {
  return { candidates: candidates.filter(({ word }) => word.startsWith(typed)), isFile };
}

/**
 * Prints candidates in cobra's format, which kubectl's completion reads: one per line, a tab before the description,
 * then ":0", or ":4" if files are not completed (ShellCompDirectiveNoFileComp).
 * https://github.com/spf13/cobra/blob/main/site/content/completions/_index.md
 */
export function printCompletions(program: Command, words: readonly string[], output: Output): void {
  const { candidates, isFile } = complete(program, words);
  for (const { word, about } of candidates)
    output.write(about === "" ? `${word}\n` : `${word}\t${plainText(about)}\n`);
  output.write(isFile ? ":0\n" : ":4\n");
}

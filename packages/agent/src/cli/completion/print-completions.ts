import { plainText } from "@nodekeeper/api/text";
import type { Command } from "commander";
import type { Output } from "../output.ts";
import { complete } from "./complete.ts";

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

import type { Command } from "commander";
import type { Output } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { complete } from "./complete.ts";

/**
 * Prints what may stand next, as cobra does, so that kubectl's own completion reads it: a line each, with a tab before the
 * description, then ":0" where files may be completed, ":4" where not (ShellCompDirectiveNoFileComp).
 * https://github.com/spf13/cobra/blob/main/site/content/completions/_index.md
 */
export function printCompletions(program: Command, words: readonly string[], output: Output): void {
  const { candidates, isFile } = complete(program, words);
  for (const { word, about } of candidates)
    output.write(about === "" ? `${word}\n` : `${word}\t${plainText(about)}\n`);
  output.write(isFile ? ":0\n" : ":4\n");
}

import { NodekeeperError } from "@nodekeeper/core/lib";
import { type Command, CommanderError } from "commander";
import { printCompletions } from "./completion/print-completions.ts";
import { COMPLETE } from "./completion/scripts.ts";
import type { Output } from "./output.ts";
import { printError } from "./print-error.ts";

/** Parses a command line and runs its command. Returns the exit status: 0 done, 1 failed, 2 wrong usage or configuration. */
export async function runProgram(
  program: Command,
  argv: readonly string[],
  { output, status }: { output: Output; status: () => number },
): Promise<number> {
  if (argv[2] === COMPLETE) {
    printCompletions(program, argv.slice(3), output);
    return 0;
  }
  try {
    await program.parseAsync([...argv]);
    return status();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    await printError(error);
    return error instanceof NodekeeperError && error.code === "invalid" ? 2 : 1;
  }
}

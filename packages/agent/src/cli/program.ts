import { NodekeeperError } from "@nodekeeper/core/lib";
import { Command, CommanderError } from "commander";
import type { CommandContext } from "./commands/context.ts";
import { printCompletions } from "./completion/print-completions.ts";
import { COMPLETE } from "./completion/scripts.ts";
import { configureHelp } from "./help.ts";
import { plainAccess } from "./plain-access.ts";
import { printError } from "./print-error.ts";
import { packageVersion } from "./version.ts";

/** Creates a program without commands. */
export function newProgram(name: string, description: string): Command {
  return configureHelp(new Command(name))
    .description(description)
    .version(packageVersion(), "--version", "print the version")
    .showHelpAfterError("(see --help)")
    .exitOverride();
}

/** Declares the commands of a program. What they print from agents is escaped: `plainAccess`. */
export function declareCommands(
  program: Command,
  commands: readonly ((program: Command, context: CommandContext) => void)[],
  context: CommandContext,
): Command {
  const plain = { ...context, agents: plainAccess(context.agents) };
  for (const declare of commands) declare(program, plain);
  return program;
}

/**
 * Parses a command line and runs its command. Returns the exit status: 0 success, 1 failure, 2 invalid usage or
 * configuration.
 */
export async function runProgram(
  create: (context: CommandContext) => Command,
  argv: readonly string[],
  { output, agents }: Pick<CommandContext, "output" | "agents">,
): Promise<number> {
  let status = 0;
  const fail = () => {
    status = 1;
  };
  const program = create({ output, agents, fail });
  if (argv[2] === COMPLETE) {
    printCompletions(program, argv.slice(3), output);
    return 0;
  }
  try {
    await program.parseAsync([...argv]);
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    printError(error);
    return error instanceof NodekeeperError && error.code === "invalid" ? 2 : 1;
  }
}

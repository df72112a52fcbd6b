import { findProblem } from "@nodekeeper/api/error-catalogue";
import { errorIdOf, messageWithId, NodekeeperError } from "@nodekeeper/core/lib";
import { Command, CommanderError, type Help } from "commander";
import type { CommandContext } from "./commands/context.ts";
import { printCompletions } from "./completion/complete.ts";
import { COMPLETE } from "./completion/scripts.ts";
import { printMessage } from "./output.ts";
import { plainAccess } from "./plain-access.ts";
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

/** Prints an error to standard error. If it has an id, its cause and remedy follow. */
function printError(error: unknown): void {
  const id = errorIdOf(error);
  printMessage(messageWithId(error));
  const problem = id && findProblem(id);
  if (problem) process.stderr.write(`  Cause: ${problem.cause}\n  Remedy: ${problem.remedy}\n`);
}

const WIDEST_TERM = 30;
const INDENT = 6;

/**
 * Formats a program's help for 80 columns: the description of an option with a long name starts on the next line. The
 * help of commands includes the program's options.
 */
function configureHelp(program: Command): Command {
  return program.configureHelp({
    showGlobalOptions: true,
    padWidth(command: Command, helper: Help) {
      const terms = [
        ...helper.visibleOptions(command).map((option) => helper.optionTerm(option)),
        ...helper.visibleGlobalOptions(command).map((option) => helper.optionTerm(option)),
        ...helper.visibleCommands(command).map((each) => helper.subcommandTerm(each)),
        ...helper.visibleArguments(command).map((argument) => helper.argumentTerm(argument)),
      ];
      return Math.max(0, ...terms.map((term) => term.length).filter((length) => length <= WIDEST_TERM));
    },
    formatItem(term: string, termWidth: number, description: string, helper: Help) {
      const width = helper.helpWidth ?? 80;
      if (term.length <= WIDEST_TERM) {
        const lines = helper.boxWrap(description, width - termWidth - 4).split("\n");
        const indent = " ".repeat(termWidth + 4);
        return `  ${term.padEnd(termWidth)}  ${lines.join(`\n${indent}`)}`.trimEnd();
      }
      const lines = helper.boxWrap(description, width - INDENT).split("\n");
      return [`  ${term}`, ...lines.map((line) => " ".repeat(INDENT) + line)].join("\n");
    },
  });
}

import type { createProgram } from "../packages/agent/src/cli/index.ts";

type Command = ReturnType<typeof createProgram>;

/** A program's manual page for man(1), of section 1, from the declarations of its commands: groff_man(7). */
export function manPageOf(program: Command, version: string): string {
  const name = program.name();
  const lines = [
    `.TH ${name.toUpperCase().replaceAll("-", "\\-")} 1 "" "nodekeeper ${version}" "Nodekeeper"`,
    ".SH NAME",
    `${roff(name)} \\- ${roff(program.description())}`,
    ".SH SYNOPSIS",
    `.B ${roff(name)}`,
    ".RI [ options ]",
    ".I command",
    ".SH OPTIONS",
    ...optionsOf(program),
    ".SH COMMANDS",
    ...program.commands.flatMap((command) => commandOf(command, name)),
    ".SH EXIT STATUS",
    "0 done, 1 failed, 2 wrong usage or configuration.",
    ".SH ENVIRONMENT",
    "Each setting of \\fBrun\\fR has a variable, which its description names. A flag overrides the variable, and the variable the",
    "configuration file.",
  ];
  return `${lines.join("\n")}\n`;
}

function commandOf(command: Command, parent: string): string[] {
  const name = `${parent} ${command.name()}`;
  const words = command.registeredArguments.map((argument) => {
    const word = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? `<${word}>` : `[${word}]`;
  });
  const own = [`.SS ${roff([name, ...words].join(" "))}`, roff(command.description()), ...optionsOf(command)];
  // A command with arguments of its own runs without a subcommand too.
  const runs = command.commands.length === 0 || words.length > 0;
  return [...(runs ? own : []), ...command.commands.flatMap((each) => commandOf(each, name))];
}

function optionsOf(command: Command): string[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap((option) => [
      ".TP",
      `.B ${roff(option.flags)}`,
      roff(command.createHelp().optionDescription(option)),
    ]);
}

// Characters that roff reads, and a period or quote at the beginning of a line, where it starts a request.
function roff(text: string): string {
  const escaped = text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replaceAll(/\s+/g, " ").trim();
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}

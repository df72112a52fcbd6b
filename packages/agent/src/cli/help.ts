import type { Command, Help } from "commander";

const WIDEST_TERM = 30;
const INDENT = 6;

/**
 * Formats a program's help for 80 columns: the description of an option with a long name starts on the next line. The
 * help of commands includes the program's options.
 */
export function configureHelp(program: Command): Command {
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

import type { Command, Help } from "commander";

const WIDEST_TERM = 30;
const INDENT = 6;

/**
 * Has a program's help readable in 80 columns: an option with a long name has its description in the lines below. Options of
 * the program are in the help of its commands as well.
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

import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { commandRun, pageFormatOption } from "./options.ts";

/** `rounds` */
export function declareRounds(program: Command, { output, agents }: CommandContext): void {
  const rounds = program
    .command("rounds")
    .description("list eviction rounds in which something happened, oldest first");
  agents
    .addRecordOptions(rounds)
    .addOption(pageFormatOption())
    .option("--since <duration>", "start this long ago (default: 1h from an agent, all from --from)")
    .option("-f, --follow", "keep printing new rounds", false)
    .option(
      "--records",
      "print complete records and pod history as JSON lines, for use with --from on another machine",
      false,
    )
    .action(async (_, command) => {
      const options = command.optsWithGlobals();
      const { output: format, since, follow, records } = options;
      using source = await agents.openRecords(options);
      const { roundsCommand } = await import("../eviction/rounds.ts");
      using run = await commandRun(output);
      await roundsCommand(source, { format, since, follow, records }, run);
    });
}

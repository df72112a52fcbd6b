import { systemClock } from "@nodekeeper/core/lib";
import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { addRecordOptions, oneOf, signals } from "./options.ts";

/** `nodekeeper rounds` */
export function declareRounds(program: Command, { output }: CommandContext): void {
  addRecordOptions(
    program.command("rounds").description("list eviction rounds in which something happened, oldest first"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .option("--since <duration>", "start this long ago (default: 1h from an agent, everything from --from)")
    .option("-f, --follow", "keep printing new rounds", false)
    .option(
      "--records",
      "print complete records and pod history as JSON lines, for use with --from on another machine",
      false,
    )
    .action(async ({ server, from, output: given, since, follow, records }) => {
      const { roundsCommand } = await import("../eviction/rounds.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      const options = { server, from, format, since, follow, records };
      await roundsCommand(options, output, systemClock, await signals());
    });
}

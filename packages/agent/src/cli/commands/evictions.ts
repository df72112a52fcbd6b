import type { Command } from "commander";
import { archiveOf } from "../kubectl/archive-access.ts";
import type { CommandContext } from "./context.ts";
import { tableFormatOption } from "./options.ts";

/** `evictions` */
export function declareEvictions(program: Command, { output }: CommandContext): void {
  program
    .command("evictions")
    .description(
      "list the evictions on all nodes from the archive, or count them; also of nodes that are gone",
    )
    .option("--since <duration>", "selected since then", "24h")
    .option(
      "--by <keys>",
      "count by owner, namespace, plugin, scope, node or cluster; several separated by commas",
    )
    .addOption(tableFormatOption())
    .action(async (_, command) => {
      const options = command.optsWithGlobals();
      const archive = await archiveOf(options);
      const { evictionsCommand } = await import("../archive/evictions-page.ts");
      await evictionsCommand(archive, options, output, Date.now());
    });
}

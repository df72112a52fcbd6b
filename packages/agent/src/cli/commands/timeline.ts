import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { commandRun, pageFormatOption } from "./options.ts";

/** `timeline` */
export function declareTimeline(program: Command, { output, agents }: CommandContext): void {
  const timeline = program
    .command("timeline")
    .description("print what happened on this node: agent starts, plugins, taints, evictions");
  agents
    .addOptions(timeline)
    .addOption(pageFormatOption())
    .option("-f, --follow", "keep printing new entries", false)
    .option("--since <duration>", "start this long ago", "24h")
    .action(async (_, command) => {
      const options = command.optsWithGlobals();
      const { timelineCommand } = await import("../timeline.ts");
      using agent = await agents.connect(options);
      const { output: format, follow: isFollowed, since } = options;
      using run = await commandRun(output);
      await timelineCommand(agent, { format, isFollowed, since }, run);
    });
}

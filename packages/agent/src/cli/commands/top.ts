import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { tableFormatOption } from "./options.ts";

/** `top` */
export function declareTop(program: Command, { output, agents }: CommandContext): void {
  const top = program
    .command("top")
    .description(
      "print the values that eviction plugins observe and their thresholds, closest to the threshold first",
    );
  agents
    .addOptions(top)
    .addOption(tableFormatOption())
    .action(async (_, command) => {
      const options = command.optsWithGlobals();
      using agent = await agents.connect(options);
      const { topCommand } = await import("../top.ts");
      await topCommand(agent, options.output, output, Date.now());
    });
}

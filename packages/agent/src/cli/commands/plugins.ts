import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { tableFormatOption } from "./options.ts";

/** `plugins` */
export function declarePlugins(program: Command, { output, agents }: CommandContext): void {
  const list = program
    .command("plugins")
    .description("list the plugins of the running agent")
    .command("list", { isDefault: true })
    .description("list plugins with their state and its reason; -o wide prints a row for each socket");
  agents
    .addOptions(list)
    .addOption(tableFormatOption())
    .action(async (_, command) => {
      const options = command.optsWithGlobals();
      using agent = await agents.connect(options);
      const { pluginsCommand } = await import("../plugins.ts");
      await pluginsCommand(agent, options.output, output, Date.now());
    });
}

import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { oneOf, serverOption } from "./options.ts";

/** `nodekeeper plugins` */
export function declarePlugins(program: Command, { output }: CommandContext): void {
  program
    .command("plugins")
    .description("plugins of the running agent")
    .command("list", { isDefault: true })
    .description("list plugins with their state and the reason for it")
    .addOption(serverOption())
    .option("-o, --output <format>", "table, wide or json", "table")
    .action(async (options) => {
      const { pluginsCommand } = await import("../plugins.ts");
      const format = oneOf(options.output, ["table", "wide", "json"] as const, "--output");
      await pluginsCommand({ server: options.server, format }, output, Date.now());
    });
}

import type { Command } from "commander";
import { addConfigurationOptions } from "../settings-options.ts";
import type { CommandContext } from "./context.ts";
import { pageFormatOption } from "./options.ts";

/** `nodekeeper preflight` */
export function declarePreflight(program: Command, { output, fail }: CommandContext): void {
  addConfigurationOptions(
    program
      .command("preflight")
      .addOption(pageFormatOption())
      .description(
        "check the agent's requirements on this node: kernel, cgroups, directories, API server, permissions",
      ),
  ).action(async (options) => {
    const { preflightCommand } = await import("../preflight.ts");
    if (!(await preflightCommand(options, output))) fail();
  });
}

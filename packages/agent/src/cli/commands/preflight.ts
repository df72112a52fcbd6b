import type { Command } from "commander";
import { addConfigurationOptions } from "../settings-options.ts";
import type { CommandContext } from "./context.ts";
import { oneOf } from "./options.ts";

/** `nodekeeper preflight` */
export function declarePreflight(program: Command, { output, fail }: CommandContext): void {
  addConfigurationOptions(
    program
      .command("preflight")
      .option("-o, --output <format>", "text or json", "text")
      .description(
        "check the agent's requirements on this node: kernel, cgroups, folders, API server, permissions",
      ),
  ).action(async (options) => {
    oneOf(options.output, ["text", "json"] as const, "--output");
    const { preflightCommand } = await import("../preflight.ts");
    if (!(await preflightCommand(options, output))) fail();
  });
}

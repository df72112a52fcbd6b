import type { Command } from "commander";
import { addConfigurationOptions } from "../settings-options.ts";
import type { CommandContext } from "./context.ts";
import { pageFormatOption } from "./options.ts";

/** `nodekeeper config` */
export function declareConfig(program: Command, { output }: CommandContext): void {
  const config = program.command("config").description("print and validate configurations");
  config
    .command("default")
    .description("print the default configuration with comments")
    .action(async () => (await import("../config.ts")).configDefaultCommand(output));
  config
    .command("schema")
    .description("print the JSON schema of the configuration")
    .action(async () => (await import("../config.ts")).configSchemaCommand(output));
  addConfigurationOptions(
    config
      .command("validate")
      .argument("[file]", "configuration file")
      .addOption(pageFormatOption())
      .description("load a configuration as `run` does and print every problem"),
  ).action(async (file, options) => {
    const { configValidateCommand } = await import("../config.ts");
    await configValidateCommand(file, options, output);
  });
}

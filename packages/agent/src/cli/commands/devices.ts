import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { oneOf, serverOption } from "./options.ts";

/** `nodekeeper devices` */
export function declareDevices(program: Command, { output }: CommandContext): void {
  program
    .command("devices")
    .argument("[driver]", "print only this driver, with its slices and quarantined devices")
    .description("list device drivers, their devices and the ResourceSlices they are published in")
    .addOption(serverOption())
    .option("-o, --output <format>", "table or json", "table")
    .action(async (driver, options) => {
      const { devicesCommand } = await import("../devices.ts");
      const format = oneOf(options.output, ["table", "json"] as const, "--output");
      await devicesCommand({ server: options.server, format, driver }, output, Date.now());
    });
}

import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { tableFormatOption } from "./options.ts";

/** `devices` */
export function declareDevices(program: Command, { output, agents }: CommandContext): void {
  const devices = program
    .command("devices")
    .argument("[driver]", "print only this driver, with its slices and quarantined devices")
    .description("list device drivers, their devices and the ResourceSlices they are published in");
  agents
    .addOptions(devices)
    .addOption(tableFormatOption())
    .action(async (driver, _, command) => {
      const options = command.optsWithGlobals();
      using agent = await agents.connect(options);
      const { devicesCommand } = await import("../devices.ts");
      await devicesCommand(agent, { format: options.output, driver }, output, Date.now());
    });
}

import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { optionsWithNode, tableFormatOption } from "./options.ts";

/** `status` */
export function declareStatus(program: Command, { output, fail, agents }: CommandContext): void {
  const status = program.command("status").description(agents.statusDescription);
  agents
    .addNodeArgument(agents.addOptions(status))
    .addOption(tableFormatOption())
    .action(async (...given) => {
      const options = optionsWithNode(given.at(-1));
      const { fleetStatusCommand, statusCommand } = await import("../status/status.ts");
      const print = { format: options.output, output, now: Date.now() };
      const fleet = agents.fleet(options);
      if (fleet) {
        if (!(await fleetStatusCommand(fleet, print))) fail();
        return;
      }
      using agent = await agents.connect(options);
      await statusCommand(agent, print);
    });
}

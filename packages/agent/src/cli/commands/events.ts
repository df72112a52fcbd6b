import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { commandRun, pageFormatOption } from "./options.ts";
import { podSelector } from "./pod-selector.ts";

/** `events` */
export function declareEvents(program: Command, { output, agents }: CommandContext): void {
  const events = program
    .command("events")
    .argument("[pod]", "only events of this pod: [NAMESPACE/]NAME or UID")
    .description("print the pod lifecycle events of this node, in order");
  agents
    .addNamespaceOptions(agents.addOptions(events))
    .addOption(pageFormatOption())
    .option("-f, --follow", "keep printing new events", false)
    .option("--since <when>", "start this long ago, or after a cursor printed by an earlier run", "1h")
    .action(async (pod, _, command) => {
      const options = command.optsWithGlobals();
      const { eventsCommand } = await import("../events.ts");
      const selector = await podSelector(agents, options, pod);
      using agent = await agents.connect(options);
      const { output: format, follow: isFollowed, since } = options;
      const asked = { format, isFollowed, since, selector };
      using run = await commandRun(output);
      await eventsCommand(agent, asked, run);
    });
}

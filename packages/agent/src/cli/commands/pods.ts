import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { commandRun, tableFormatOption } from "./options.ts";
import { podSelector } from "./pod-selector.ts";

/** `pods` */
export function declarePods(program: Command, { output, agents }: CommandContext): void {
  const pods = program
    .command("pods")
    .argument("[pod]", "only this pod: [NAMESPACE/]NAME or UID")
    .description("list the pods on this node, as reported by the container runtime");
  agents
    .addNamespaceOptions(agents.addOptions(pods))
    .addOption(tableFormatOption())
    .option("-w, --watch", "keep running and print each pod again when it changes", false)
    .action(async (pod, _, command) => {
      const options = command.optsWithGlobals();
      const { podsCommand } = await import("../pods.ts");
      const selector = await podSelector(agents, options, pod);
      using agent = await agents.connect(options);
      const asked = { format: options.output, isWatched: options.watch, selector };
      using run = await commandRun(output);
      await podsCommand(agent, asked, run);
    });
}

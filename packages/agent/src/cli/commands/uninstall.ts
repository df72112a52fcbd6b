import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { commandRun, pageFormatOption } from "./options.ts";

/** `nodekeeper uninstall` */
export function declareUninstall(program: Command, { output, fail }: CommandContext): void {
  program
    .command("uninstall")
    .description(
      "remove what agents left in the cluster: their taints, fields and conditions of Nodes, their fields of CustomNodeResources, and their ResourceSlices",
    )
    .option("--node <name>", "node to clean")
    .option("--all-nodes", "clean all nodes")
    .option("-l, --selector <labels>", "with --all-nodes: only nodes with these labels")
    .option("--dry-run", "print what would be removed, and write nothing")
    .option("--config <file>", "configuration file of the agents, for reporting.additionalKinds")
    .option("--kubeconfig <path>", "kubeconfig file")
    .option("--kube-context <name>", "context in the kubeconfig file")
    .addOption(pageFormatOption())
    .action(async (options) => {
      const { uninstallCommand } = await import("../uninstall.ts");
      using run = await commandRun(output);
      if (!(await uninstallCommand(options, run))) fail();
    });
}

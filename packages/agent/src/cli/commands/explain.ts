import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { addRecordOptions, oneOf } from "./options.ts";

/** `nodekeeper explain` */
export function declareExplain(program: Command, { output }: CommandContext): void {
  const explain = program.command("explain").description("explain why a pod was evicted or the node tainted");
  addRecordOptions(
    explain
      .command("pod")
      .argument(
        "<namespace/name>",
        "the pod, or its UID; if several pods had this name, the one that left the node last",
      )
      .description("explain why a pod left the node or was not evicted: the plugin, the ranking, each step"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .action(async (pod, { server, from, output: given }) => {
      const { explainPodCommand } = await import("../eviction/explain.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await explainPodCommand(pod, { server, from, format }, output);
    });

  addRecordOptions(
    explain
      .command("node")
      .description("explain the conditions and taints set by eviction: plugin, reason, start and end"),
  )
    .option("-o, --output <format>", "text or json", "text")
    .action(async ({ server, from, output: given }) => {
      const { explainNodeCommand } = await import("../eviction/explain.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await explainNodeCommand({ server, from, format }, output);
    });
}

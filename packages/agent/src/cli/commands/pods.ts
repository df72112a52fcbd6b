import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { addSocketOption, oneOf, signals } from "./options.ts";

/** `nodekeeper pods` */
export function declarePods(program: Command, { output }: CommandContext): void {
  addSocketOption(
    program.command("pods").description("list the pods on this node, as reported by the container runtime"),
  )
    .option("-o, --output <format>", "table, wide or json", "table")
    .option("-n, --namespace <name>", "only pods in this namespace")
    .option("-w, --watch", "keep running, and print a pod again when it changes", false)
    .action(async ({ socket, output: given, namespace, watch }) => {
      const { podsCommand } = await import("../pods.ts");
      const format = oneOf(given, ["table", "wide", "json"] as const, "--output");
      await podsCommand({ socket, format, namespace, watch }, output, Date.now, await signals());
    });
}

import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { addSocketOption, oneOf, signals } from "./options.ts";

/** `nodekeeper events` */
export function declareEvents(program: Command, { output }: CommandContext): void {
  addSocketOption(program.command("events").description("print pod lifecycle events on this node, in order"))
    .option("-o, --output <format>", "text or json", "text")
    .option("-f, --follow", "keep printing new events", false)
    .option("--since <when>", "start this long ago, or at a cursor printed by an earlier run", "1h")
    .option("--pod <namespace/name>", "only events of this pod")
    .action(async ({ socket, output: given, follow, since, pod }) => {
      const { eventsCommand } = await import("../events.ts");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      await eventsCommand({ socket, format, follow, since, pod }, output, Date.now, await signals());
    });
}

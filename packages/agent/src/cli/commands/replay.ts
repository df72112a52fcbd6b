import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { addRecordOptions, oneOf } from "./options.ts";

/** `nodekeeper replay` */
export function declareReplay(program: Command, { output }: CommandContext): void {
  addRecordOptions(
    program
      .command("replay")
      .description("decide recorded rounds again with another configuration, and print the differences"),
  )
    .requiredOption("--config <file>", "configuration to decide with (AgentConfiguration, YAML)")
    .option("-o, --output <format>", "text or json", "text")
    .option("--since <duration>", "start this long ago (default: 1h from an agent, everything from --from)")
    .action(async ({ server, output: given, from, since, config: file }) => {
      const { replayCommand } = await import("../eviction/replay.ts");
      const { hostname } = await import("node:os");
      const format = oneOf(given, ["text", "json"] as const, "--output");
      // Only the file counts: environment variables of this shell do not change the policy.
      const sources = { file, flags: {}, env: {}, hostname: hostname() };
      await replayCommand({ server, from, format, since, sources }, output, Date.now());
    });
}

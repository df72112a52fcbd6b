import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { pageFormatOption } from "./options.ts";

/** `nodekeeper replay` */
export function declareReplay(program: Command, { output, agents }: CommandContext): void {
  const replay = program
    .command("replay")
    .description("decide recorded rounds again with another configuration and print the differences");
  agents
    .addRecordOptions(replay)
    .requiredOption("--config <file>", "configuration to decide with (AgentConfiguration, YAML)")
    .addOption(pageFormatOption())
    .option("--since <duration>", "start this long ago (default: 1h from an agent, all from --from)")
    .action(async (options) => {
      const { output: format, since, config: file } = options;
      const { replayCommand } = await import("../eviction/replay.ts");
      const { hostname } = await import("node:os");
      // Only the file counts: environment variables of this shell must not change the policy.
      const sources = { file, flags: {}, env: {}, hostname: hostname() };
      using source = await agents.openRecords(options);
      await replayCommand(source, { format, since, sources }, output, Date.now());
    });
}

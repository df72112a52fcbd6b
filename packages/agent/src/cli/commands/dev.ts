import type { Command } from "commander";
import type { CommandContext } from "./context.ts";

/** `nodekeeper dev` */
export function declareDev(program: Command, { output }: CommandContext): void {
  program
    .command("dev")
    .description(
      "run a development cluster: an embedded API server, a simulated container runtime with pods, the agent and sample plugins",
    )
    .option(
      "--data-dir <path>",
      "directory for the cluster's objects and the agent's state (default: a temporary directory)",
    )
    .option("--api-port <port>", "port of the API server on 127.0.0.1 (default: a free one)")
    .option(
      "--server <host:port>",
      "address of the agent's status server (default: a free port on 127.0.0.1)",
    )
    .option("--node-name <name>", "name of the node", "dev-node")
    .option("--no-agent", "do not run the agent; print the command that runs it")
    .option("--no-plugin", "do not run the sample plugins")
    .option("--first-pressure <time>", "delay before the sample eviction plugin first reports pressure", "5s")
    .option("--no-simulated-runtime", "do not simulate a container runtime; discover the machine's own")
    .option("--log-level <level>", "debug, info, warn or error", "info")
    .option("--verbose", "print the agent's log instead of a live line")
    .action(async (options) => {
      const { devCommand } = await import("../dev.ts");
      await devCommand(options, output);
    });
}

import { NodekeeperError } from "@nodekeeper/core/lib";
import { Command, CommanderError } from "commander";
import { declareConfig } from "./commands/config.ts";
import { declareDev } from "./commands/dev.ts";
import { declareDevices } from "./commands/devices.ts";
import { declareEvents } from "./commands/events.ts";
import { declareExplain } from "./commands/explain.ts";
import { declarePlugins } from "./commands/plugins.ts";
import { declarePods } from "./commands/pods.ts";
import { declarePolicy } from "./commands/policy.ts";
import { declarePreflight } from "./commands/preflight.ts";
import { declareReplay } from "./commands/replay.ts";
import { declareRounds } from "./commands/rounds.ts";
import { declareRun } from "./commands/run.ts";
import { declareVersion } from "./commands/version.ts";
import { type Output, standardOutput } from "./output.ts";
import { printError } from "./print-error.ts";
import { packageVersion } from "./version.ts";

// In the order of --help. Each loads what it needs when it runs, so that `version` does not load the agent.
const commands = [
  declareRun,
  declareDev,
  declarePlugins,
  declarePods,
  declareEvents,
  declareDevices,
  declareExplain,
  declareRounds,
  declareReplay,
  declarePolicy,
  declareConfig,
  declarePreflight,
  declareVersion,
];

/** The command line. Returns the exit status: 0 done, 1 failed, 2 wrong usage or configuration. */
export async function runCli(argv: readonly string[], output: Output = standardOutput): Promise<number> {
  let status = 0;
  const fail = () => {
    status = 1;
  };
  const program = new Command("nodekeeper")
    .description(
      "Kubernetes node agent: reports node resources, tracks pod lifecycle, publishes devices, and evicts pods under pressure.",
    )
    .version(packageVersion(), "--version", "print the version")
    .showHelpAfterError("(see --help)")
    .exitOverride();
  for (const declare of commands) declare(program, { output, fail });

  try {
    await program.parseAsync([...argv]);
    return status;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    await printError(error);
    return error instanceof NodekeeperError && error.code === "invalid" ? 2 : 1;
  }
}

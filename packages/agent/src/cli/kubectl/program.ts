import type { Command } from "commander";
import { declareCompletion } from "../commands/completion.ts";
import type { CommandContext } from "../commands/context.ts";
import { declareDevices } from "../commands/devices.ts";
import { declareEvents } from "../commands/events.ts";
import { declareEvictions } from "../commands/evictions.ts";
import { declareExplain } from "../commands/explain.ts";
import { declarePlugins } from "../commands/plugins.ts";
import { declarePods } from "../commands/pods.ts";
import { declareRounds } from "../commands/rounds.ts";
import { declareStatus } from "../commands/status.ts";
import { declareTimeline } from "../commands/timeline.ts";
import { declareTop } from "../commands/top.ts";
import { declareVersion } from "../commands/version.ts";
import { type Output, standardOutput } from "../output.ts";
import { declareCommands, newProgram, runProgram } from "../program.ts";
import { ClusterAccess } from "./access.ts";
import { addClusterOptions } from "./options.ts";
import { declarePage } from "./page/declare-page.ts";

interface ClusterContext extends CommandContext {
  agents: ClusterAccess;
}

// In the order of --help. The page is not among the shared commands: it needs more of the cluster than they do.
const commandsOf = (access: ClusterAccess) => [
  declareStatus,
  (program: Command, context: CommandContext) => declarePage(program, { ...context, access }),
  declareExplain,
  declareEvictions,
  declarePods,
  declareEvents,
  declareTimeline,
  declarePlugins,
  declareDevices,
  declareRounds,
  declareTop,
  declareCompletion,
  declareVersion,
];

/** Declares the commands of `kubectl nodekeeper` without running any. */
export function createKubectlProgram(context: ClusterContext): Command {
  const about = "Query the Nodekeeper agents of a cluster's nodes, with your own permissions.";
  const program = newProgram("kubectl-nodekeeper", about).usage("[options] [command]");
  addClusterOptions(program);
  return declareCommands(program, commandsOf(context.agents), context);
}

/** Runs `kubectl nodekeeper`. Returns the exit status, as `runCli`. All processes it starts are terminated. */
export async function runKubectlPlugin(
  argv: readonly string[],
  output: Output = standardOutput,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  const agents = new ClusterAccess(env);
  const stop = () => agents.stop();
  const exit = () => process.exit(130);
  process.on("exit", stop);
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, exit);
  try {
    return await runProgram((context) => createKubectlProgram({ ...context, agents }), argv, {
      output,
      agents,
    });
  } finally {
    stop();
    process.off("exit", stop);
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.off(name, exit);
  }
}

import type { Command } from "commander";
import { declareCompletion } from "./commands/completion.ts";
import { declareConfig } from "./commands/config.ts";
import { declareConformance } from "./commands/conformance.ts";
import type { CommandContext } from "./commands/context.ts";
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
import { declareStatus } from "./commands/status.ts";
import { declareTimeline } from "./commands/timeline.ts";
import { declareTop } from "./commands/top.ts";
import { declareUninstall } from "./commands/uninstall.ts";
import { declareVersion } from "./commands/version.ts";
import { localAccess } from "./local-access.ts";
import { type Output, standardOutput } from "./output.ts";
import { declareCommands, newProgram, runProgram } from "./program.ts";

// In the order of --help. Each loads its dependencies when it runs, so that `version` does not load the agent.
const commands = [
  declareRun,
  declareDev,
  declareStatus,
  declarePlugins,
  declarePods,
  declareEvents,
  declareTimeline,
  declareDevices,
  declareExplain,
  declareRounds,
  declareTop,
  declareReplay,
  declarePolicy,
  declareConformance,
  declareConfig,
  declarePreflight,
  declareUninstall,
  declareCompletion,
  declareVersion,
];

/** Declares the commands of `nodekeeper` without running any. */
export function createProgram(context: CommandContext): Command {
  const program = newProgram(
    "nodekeeper",
    "Kubernetes node agent: reports node resources, tracks pod lifecycle, publishes devices, and evicts pods under pressure.",
  );
  return declareCommands(program, commands, context);
}

/** Runs the command line. Returns the exit status: 0 success, 1 failure, 2 invalid usage or configuration. */
export async function runCli(argv: readonly string[], output: Output = standardOutput): Promise<number> {
  return await runProgram(createProgram, argv, { output, agents: localAccess });
}

/** Runs the command line of `kubectl nodekeeper`, which is loaded on demand. Returns the exit status, as `runCli`. */
export async function runPlugin(argv: readonly string[]): Promise<number> {
  const { runKubectlPlugin } = await import("./kubectl/program.ts");
  return await runKubectlPlugin(argv);
}

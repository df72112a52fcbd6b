import type { Command } from "commander";
import type { CommandContext } from "./context.ts";
import { countOf, pageFormatOption, signals } from "./options.ts";

/** `nodekeeper conformance` */
export function declareConformance(program: Command, { output, fail }: CommandContext): void {
  program
    .command("conformance")
    .description("check plugins against their contract")
    .command("driver")
    .argument("<place>", "the driver's registration socket, or the directory that it is served in")
    .description(
      "check a device driver as the agent and the kubelet call it; prepares and unprepares real devices, unless --no-prepare",
    )
    .option(
      "--command <command>",
      "run the driver, kill and restart it, and end it with SIGTERM (default: it runs already)",
    )
    .option("--restart-command <command>", "command that restarts a driver that runs already")
    .option(
      "--idle",
      "the driver serves no pods: also call RestoreClaims, ReportAllocations and ReportProblems, as with --command",
    )
    .option("--no-prepare", "do not prepare and unprepare devices")
    .option("--device <names...>", "prepare only these devices: <device> or <pool>/<device>")
    .option("--configuration <json>", "opaque parameters of the claims, a JSON object")
    .option("--calls <count>", "number of claims to measure the time of PrepareDevices", "100")
    .option("--node-name <name>", "name of the node", "conformance-node")
    .addOption(pageFormatOption())
    .action(async (place, { calls, device: only = [], output: format, ...options }) => {
      const { conformanceCommand } = await import("../conformance.ts");
      using scope = await signals();
      const settings = { ...options, place, only, calls: countOf(calls, "--calls"), format };
      if (!(await conformanceCommand(settings, output, scope.signal))) fail();
    });
}

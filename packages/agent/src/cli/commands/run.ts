import type { Command } from "commander";
import { keepProcessSmall, keepStartSmall, limitOptimization, returnMemoryOfStart } from "../memory.ts";
import { addConfigurationOptions } from "../settings-options.ts";

/** An agent whose API server and runtime respond is ready by then. */
const STARTED_MS = 10_000;

/** `nodekeeper run` */
export function declareRun(program: Command): void {
  addConfigurationOptions(program.command("run").description("run the agent")).action(async (options) => {
    keepStartSmall();
    limitOptimization();
    setTimeout(afterStart, STARTED_MS).unref();
    const { runCommand } = await import("../run.ts");
    await runCommand(options);
  });
}

function afterStart(): void {
  keepProcessSmall();
  returnMemoryOfStart();
}

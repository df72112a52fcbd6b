import type { Command } from "commander";
import { keepProcessSmall } from "../memory.ts";
import { addConfigurationOptions } from "../settings-options.ts";

/** `nodekeeper run` */
export function declareRun(program: Command): void {
  addConfigurationOptions(program.command("run").description("run the agent")).action(async (options) => {
    keepProcessSmall();
    const { runCommand } = await import("../run.ts");
    await runCommand(options);
  });
}

import type { Command } from "commander";
import { printJson } from "../output.ts";
import { packageVersion } from "../version.ts";
import type { CommandContext } from "./context.ts";

/** `nodekeeper version` */
export function declareVersion(program: Command, { output }: CommandContext): void {
  program
    .command("version")
    .description("print versions")
    .option("-o, --output <format>", "text or json", "text")
    .action(({ output: format }) => {
      const versions = {
        nodekeeper: packageVersion(),
        node: process.version,
        platform: `${process.platform}/${process.arch}`,
      };
      if (format === "json") printJson(output, versions);
      else output.write(`nodekeeper ${versions.nodekeeper} (node ${versions.node}, ${versions.platform})\n`);
    });
}

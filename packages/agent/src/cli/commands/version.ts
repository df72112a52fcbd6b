import type { Command } from "commander";
import { printItem } from "../output.ts";
import { packageVersion } from "../version.ts";
import type { CommandContext } from "./context.ts";
import { pageFormatOption } from "./options.ts";

/** `nodekeeper version` */
export function declareVersion(program: Command, { output }: CommandContext): void {
  program
    .command("version")
    .description("print versions")
    .addOption(pageFormatOption())
    .action(({ output: format }) => {
      const versions = {
        nodekeeper: packageVersion(),
        node: process.version,
        platform: `${process.platform}/${process.arch}`,
      };
      if (format !== "text") return printItem(output, format, versions);
      output.write(`nodekeeper ${versions.nodekeeper} (node ${versions.node}, ${versions.platform})\n`);
    });
}

import { Argument, type Command } from "commander";
import { shells } from "../completion/scripts.ts";
import type { CommandContext } from "./context.ts";

/** `completion` */
export function declareCompletion(program: Command, { output }: CommandContext): void {
  program
    .command("completion")
    .addArgument(new Argument("<shell>", "shell to complete in").choices(shells))
    .description("print the completion script for a shell")
    .action(async (shell) => {
      const { completionScript } = await import("../completion/scripts.ts");
      output.write(completionScript(shell, program.name()));
    });
}

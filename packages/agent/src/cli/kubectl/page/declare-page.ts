import { NodekeeperError } from "@nodekeeper/core/lib";
import type { Command } from "commander";
import type { CommandContext } from "../../commands/context.ts";
import { countOf, signals } from "../../commands/options.ts";
import type { ClusterAccess } from "../access.ts";

/** `kubectl nodekeeper page` */
export function declarePage(
  program: Command,
  { output, access }: Pick<CommandContext, "output"> & { access: ClusterAccess },
): void {
  program
    .command("page")
    .description(
      "serve a page of all nodes on this machine, with your own permissions: their state, live, each node's own page, search for pods, and comparison of two nodes",
    )
    .option("--port <port>", "port on 127.0.0.1 (default: a free one)")
    .action(async (_, command: Command) => {
      const options = command.optsWithGlobals();
      const { pageCommand } = await import("./page.ts");
      using scope = await signals();
      await pageCommand({
        source: access.pageSource(options),
        parallel: countOf(options.parallel, "--parallel"),
        port: portOf(options.port),
        output,
        signal: scope.signal,
      });
    });
}

function portOf(text: string | undefined): number {
  const port = Number(text ?? 0);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new NodekeeperError("invalid", `--port must be 0 to 65535; got "${text}"`);
}

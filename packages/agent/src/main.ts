#!/usr/bin/env node
import { isSea } from "node:sea";
import { isKubectlPlugin, startOver } from "./launch.ts";

// A function, because the single executable's script is not an ES module and cannot use top-level await.
void main();

async function main(): Promise<void> {
  if (isKubectlPlugin(process.argv0, isSea())) {
    const { runPlugin } = await import("./cli/index.ts");
    process.exitCode = await runPlugin(process.argv);
    return;
  }
  const [, , command] = process.argv;
  // Before the commands are loaded, because the restarted process loads everything again.
  if (command === "run") startOver(process, isSea());
  const { runCli } = await import("./cli/index.ts");
  process.exitCode = await runCli(process.argv);
  // Parts that missed the stop deadline must not keep the process alive.
  if (command === "run" || command === "dev") process.exit();
}

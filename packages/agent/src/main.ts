#!/usr/bin/env node
import { isSea } from "node:sea";
import { isKubectlPlugin, startOver } from "./launch.ts";

// A function, since the single executable's script is no ES module: it can't wait at its top level.
void main();

async function main(): Promise<void> {
  if (isKubectlPlugin(process.argv0, isSea())) {
    const { runPlugin } = await import("./cli/index.ts");
    process.exitCode = await runPlugin(process.argv);
    return;
  }
  const [, , command] = process.argv;
  // Before the commands are loaded: what is loaded here is loaded twice.
  if (command === "run") startOver(process, isSea());
  const { runCli } = await import("./cli/index.ts");
  process.exitCode = await runCli(process.argv);
  // Parts that were abandoned at the deadline for stopping neither do anything more nor hold the process.
  if (command === "run" || command === "dev") process.exit();
}

#!/usr/bin/env node
import { startOver } from "./launch.ts";

// Before the commands are loaded: what is loaded here is loaded twice.
if (process.argv[2] === "run") startOver(process);
const { runCli } = await import("./cli/index.ts");
process.exitCode = await runCli(process.argv);

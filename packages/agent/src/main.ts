#!/usr/bin/env node
import { runCli } from "./cli/index.ts";

process.exitCode = await runCli(process.argv);

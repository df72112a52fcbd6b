// A test process with what a cluster of one node has, for the test that kills it:
//   node left-behind-driver.ts
// Prints its directory when all is there.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeCgroup } from "./cgroups.ts";
import { makeRunDirectory } from "./ended-runs.ts";

const directory = makeRunDirectory();
makeCgroup(`/${basename(directory)}-node`);
const mounted = join(directory, "mounted");
mkdirSync(mounted);
execFileSync("mount", ["-t", "tmpfs", "tmpfs", mounted]);
writeFileSync(join(mounted, "log"), "");
spawn("tail", ["-f", join(mounted, "log")], { stdio: "ignore", detached: true }).unref();
console.log(directory);
await sleep(2_147_483_647);

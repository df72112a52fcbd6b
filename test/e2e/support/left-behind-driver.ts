// A test process with what a cluster of one node has, for the test that kills it:
//   node left-behind-driver.ts
// Prints its folder when all is there.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeCgroup } from "./cgroups.ts";
import { makeRunFolder } from "./ended-runs.ts";

const folder = makeRunFolder();
makeCgroup(`/${basename(folder)}-node`);
const mounted = join(folder, "mounted");
mkdirSync(mounted);
execFileSync("mount", ["-t", "tmpfs", "tmpfs", mounted]);
writeFileSync(join(mounted, "log"), "");
spawn("tail", ["-f", join(mounted, "log")], { stdio: "ignore", detached: true }).unref();
console.log(folder);
await sleep(2_147_483_647);

// A process that lives an hour of virtual time, whose globals it replaces: forked by archive-hour.e2e.test.ts.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Hour } from "../../simulation/hour.ts";
import { buildWorld, loadWorld, removeWorld } from "../../simulation/load.ts";

const SEED = 32;
// As for other worlds: test/simulation/worker.ts.
const EXECUTION = ["--always-sparkplug", "--max-semi-space-size=32"];

/** Lets a node live for an hour of virtual time, in a process of its own. */
export function virtualHour(): Promise<Hour> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(import.meta.url), { serialization: "advanced", execArgv: EXECUTION });
    let hour: Hour | undefined;
    child.on("message", (message) => {
      hour = message as Hour;
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      hour ? resolve(hour) : reject(new Error(`the hour ended with exit code ${code}`)),
    );
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.once("disconnect", () => process.exit(1));
  const bundle = await buildWorld();
  const { anHour } = await loadWorld(bundle);
  removeWorld(bundle);
  process.send!(await anHour(Number(process.env.E2E_HOUR_SEED ?? SEED)), () => process.exit(0));
}

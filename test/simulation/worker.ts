import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { loadWorld } from "./load.ts";
import type { Counted } from "./report/tally.ts";

/** Worlds that one process is to run. */
export interface Work {
  bundle: string;
  /** First seed. */
  from: number;
  seeds: number;
  isQuick: boolean;
  /** Directory into which the process writes the coverage of its code by V8. Default: not measured. */
  coverage?: string | undefined;
}

// Code of a world runs too seldom to be optimised, and nobody reads the stacks of its errors: `--seed N` has them.
const EXECUTION = ["--always-sparkplug", "--max-semi-space-size=32", "--stack-trace-limit=0"];

// A world takes a second at most. One that never ends must not end a night.
const LONGEST_WORLD_MS = 300_000;

/**
 * Runs some worlds in a process of their own: what a world leaves behind in memory ends with it. Returns why the process
 * ended before the last of them; undefined if it did not, or was ended by `isEnough` or the signal.
 * @param isEnough called with each outcome; ends the process if it returns true
 */
export function worker(
  work: Work,
  isEnough: (outcome: Counted) => boolean,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { bundle, from, seeds, isQuick, coverage } = work;
  return new Promise((resolve, reject) => {
    const args = [
      `--worker=${bundle}`,
      `--from=${from}`,
      `--seeds=${seeds}`,
      ...(isQuick ? ["--quick"] : []),
    ];
    const env = coverage === undefined ? process.env : { ...process.env, NODE_V8_COVERAGE: coverage };
    const child = fork(join(import.meta.dirname, "main.ts"), args, { env, execArgv: EXECUTION });
    const limit = setTimeout(() => child.kill("SIGKILL"), LONGEST_WORLD_MS);
    let isEnded = false;
    const end = () => {
      isEnded = true;
      child.kill();
    };
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
    child.on("message", (message) => {
      limit.refresh();
      if (!isEnded && isEnough(message as Counted)) end();
    });
    child.once("error", reject);
    child.once("exit", () => {
      clearTimeout(limit);
      signal?.removeEventListener("abort", end);
      resolve(isEnded ? undefined : problemOf(child));
    });
  });
}

function problemOf({ exitCode, signalCode }: ChildProcess): string | undefined {
  if (exitCode === 0) return undefined;
  return signalCode === null ? `the process exited with ${exitCode}` : `the process ended by ${signalCode}`;
}

/** What the process does that `worker` starts. */
export async function work({ bundle, from, seeds, isQuick }: Work): Promise<never> {
  // A terminal sends it to all processes. The one that started this one decides.
  process.on("SIGINT", () => {});
  const { simulate } = await loadWorld(bundle);
  for (let seed = from; seed < from + seeds; seed++) {
    const { events: _events, log: _log, plan: _plan, ...outcome } = await simulate(seed, { isQuick });
    process.send!(outcome);
  }
  process.exit(0);
}

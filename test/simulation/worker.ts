import { type ChildProcess, fork } from "node:child_process";
import { dirname, join } from "node:path";
import { loadWorld } from "./load.ts";
import type { Coverage } from "./report/coverage.ts";
import type { Counted } from "./report/tally.ts";

/** Worlds that one process is to run. */
export interface Work {
  bundle: string;
  seeds: readonly number[];
  isQuick: boolean;
  /** Directory into which the process writes the coverage of its code by V8. Default: not measured. */
  coverage?: string | undefined;
}

// Code of a world runs too seldom to be optimised, and nobody reads the stacks of its errors: `--seed N` has them.
const EXECUTION = ["--always-sparkplug", "--max-semi-space-size=32", "--stack-trace-limit=0"];

// Bounds a world that never ends. A world takes a few seconds at most, or a minute at the lowest priority on a busy
// machine.
const LONGEST_WORLD_MS = 900_000;

/** Returns `count` consecutive seeds, starting with `from`. */
export function seedsFrom(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, at) => from + at);
}

/**
 * Runs worlds in their order, in as many processes as it takes if some of them crash.
 * @param isEnough called with each outcome, also of a world that crashed; ends the run if it returns true
 */
export async function runWorlds(
  work: Work,
  isEnough: (outcome: Counted) => boolean,
  signal?: AbortSignal,
  coverage?: Coverage,
): Promise<void> {
  let left = work.seeds;
  let isOver = false;
  const add = (outcome: Counted) => {
    left = left.slice(1);
    isOver = isEnough(outcome);
    return isOver;
  };
  while (left.length > 0 && !isOver && !signal?.aborted) {
    const measured = coverage && join(dirname(work.bundle), `coverage-${left[0]}`);
    const problem = await worker({ ...work, seeds: left, coverage: measured }, add, signal);
    if (measured !== undefined) coverage?.collect(measured);
    if (problem !== undefined) add(unfinished(left[0]!, problem));
  }
}

function unfinished(seed: number, what: string): Counted {
  const broken = [{ promise: "Each world comes to its end.", what }];
  return { seed, broken, digest: "", steps: 0, virtualMs: 0, evictions: 0, lives: 0, faults: {} };
}

/**
 * Runs worlds in a child process, so that the memory they leave behind is freed with it. Returns why the process failed
 * before the last world. Undefined if it did not, or was ended by `isEnough` or the signal.
 * @param isEnough called with each outcome; if it returns true, the process is ended
 */
function worker(
  work: Work,
  isEnough: (outcome: Counted) => boolean,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { coverage } = work;
  return new Promise((resolve, reject) => {
    const args = [`--worker=${JSON.stringify(work)}`];
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

/** What the process does that `worker` starts. @param text the work, as JSON */
export async function work(text: string): Promise<never> {
  const { bundle, seeds, isQuick } = JSON.parse(text) as Work;
  // A terminal sends it to all processes. The one that started this one decides.
  process.on("SIGINT", () => {});
  process.once("disconnect", () => process.exit(1));
  const { simulate } = await loadWorld(bundle);
  for (const seed of seeds) {
    const { events: _events, log: _log, plan: _plan, ...outcome } = await simulate(seed, { isQuick });
    process.send!(outcome);
  }
  process.exit(0);
}

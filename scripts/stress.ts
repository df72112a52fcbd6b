// Runs tests again and again beside busy loops and lists every failure: npm run test:stress -- --help
import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunResults } from "../test/support/run-report.ts";
import { readArguments } from "./arguments.ts";
import { root } from "./programs.ts";

const help = `usage: npm run test:stress -- [options] [file filters of vitest]

Runs a suite again and again beside busy loops and lists every failure by test. A test that passes alone and fails here
depends on how fast the machine is.

  --runs N     how often the suite runs, one run after the other (default 5)
  --loops N    busy loops beside it, each of which takes a core (default 2)
  --tier T     unit, integration, all (both), heavy or e2e (default all)
  --help

Exits with 1 after any failure, 2 for arguments that make no sense.`;

const tiers: Record<string, readonly string[]> = {
  unit: ["--project", "unit"],
  integration: ["--project", "integration"],
  all: [],
  heavy: ["--config", "test/heavy/vitest.config.ts"],
  e2e: ["--config", "test/e2e/vitest.config.ts"],
};

const options = {
  runs: { type: "string", default: "5" },
  loops: { type: "string", default: "2" },
  tier: { type: "string", default: "all" },
} as const;
const { runs, loops, tier, filters } = readArguments(
  help,
  { allowPositionals: true, options },
  ({ values, positionals }) => {
    if (!(values.tier in tiers))
      throw new Error(`--tier ${values.tier}: one of ${Object.keys(tiers).join(", ")}`);
    return {
      runs: wholeNumber("--runs", values.runs, 1),
      loops: wholeNumber("--loops", values.loops, 0),
      tier: values.tier,
      filters: positionals,
    };
  },
);
const directory = await mkdtemp(join(tmpdir(), "nk-stress-"));
const children = new Set<ChildProcess>();
let isStopped = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    isStopped = true;
    for (const child of children) child.kill(signal);
  });
}

if (tier === "e2e") await import("../test/e2e/prepare.ts");
for (let loop = 0; loop < loops; loop++) children.add(fork(join(import.meta.dirname, "busy-loop.ts")));
const outcomes: { passed: number; failed: NonNullable<RunResults["failed"]> }[] = [];
for (let run = 1; run <= runs && !isStopped; run++) {
  console.log(`\n== run ${run} of ${runs}, ${tier}, beside ${loops} busy loops`);
  outcomes.push(await runSuite(join(directory, `${run}`)));
}
for (const child of children) child.kill("SIGKILL");

const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0);
const failed = outcomes.flatMap((outcome) => outcome.failed);
await rm(directory, { recursive: true, force: true });
if (process.env.TEST_RESULTS_DIR) {
  const results: RunResults = { passed, skipped: 0, failed };
  await writeFile(join(process.env.TEST_RESULTS_DIR, `stress-${process.pid}.json`), JSON.stringify(results));
}
console.log(`\n== ${outcomes.length} runs: ${passed} passed, ${failed.length} failed`);
for (const [test, failures] of Map.groupBy(failed, (failure) => failure.test)) {
  console.log(`${failures.length} of ${outcomes.length} runs: ${test}`);
  for (const message of new Set(failures.map(({ message }) => message.split("\n")[0])))
    console.log(`    ${message}`);
}
if (failed.length > 0 || isStopped) process.exitCode = 1;

function wholeNumber(option: string, text: string, least: number): number {
  if (/^\d{1,4}$/.test(text) && Number(text) >= least) return Number(text);
  throw new Error(`${option} ${text}: a whole number from ${least} to 9999`);
}

/** Runs the suite once. Returns its results; if it failed without a failed test, one failure for the whole run. */
async function runSuite(resultsDirectory: string) {
  const vitest = join(root, "node_modules/.bin/vitest");
  const child = spawn(vitest, ["run", ...tiers[tier]!, ...filters], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, TEST_RESULTS_DIR: resultsDirectory },
  });
  children.add(child);
  const code = await new Promise<number | string>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status, signal) => resolve(status ?? signal ?? "unknown"));
  });
  children.delete(child);
  const { passed = 0, failed = [] } = await readResults(resultsDirectory);
  if (failed.length === 0 && code !== 0)
    failed.push({ test: "the run as a whole", message: `vitest ended with ${code} and named no failure` });
  return { passed, failed };
}

async function readResults(resultsDirectory: string): Promise<RunResults> {
  const [name] = await readdir(resultsDirectory).catch(() => []);
  return name ? JSON.parse(await readFile(join(resultsDirectory, name), "utf8")) : {};
}

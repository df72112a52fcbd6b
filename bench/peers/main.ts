// Measures the agent beside other programs in turns: npm run bench:peers -- --help
import { mkdir, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { writeGeneratedFiles } from "../../scripts/generated-files.ts";
import { printProgress, root, run } from "../../scripts/programs.ts";
import { type Programs, prepare } from "./go-programs.ts";
import { measurements } from "./measurements.ts";
import { type Result, summaryOf } from "./results.ts";
import { type RowName, rows, type Workload } from "./rows.ts";
import { type Outcome, summaryText } from "./summary.ts";
import { measureWorkload } from "./workload.ts";

const names = Object.keys(rows) as RowName[];
const usage = `usage: npm run bench:peers -- [--only ROW]... [--runs N] [--quick] [--cached]

Builds the agent, and Go programs that import upstream packages (once; Go is needed), and runs them in turns under the
same workload. Rows of one workload are measured by one run. Writes bench/results/ROW.json, docs/performance.md and its
picture. A row that fails is reported at the end, and the others are measured.

  --only ROW   measures only this row; can be repeated. Rows: ${names.join(", ")}
  --runs N     pairs of each row; 5
  --quick      two short pairs of each row, which are printed and not written
  --cached     builds no Go program: skips the rows of those that have not been built on this machine`;

const values = readArguments();
const { only, quick, cached } = values;
const runs = Number(values.runs ?? (quick ? 2 : 5));
const unknown = only.filter((name) => !(name in rows));
if (values.help || unknown.length > 0 || !Number.isInteger(runs) || runs < 1) {
  if (unknown.length > 0) console.error(`unknown row: ${unknown.join(", ")}`);
  (values.help ? console.log : console.error)(usage);
  process.exit(values.help ? 0 : 2);
}

// Before the first result is written: "-dirty" states that the measured code is not what was committed.
const describe = ["describe", "--always", "--dirty", "--exclude=*", "--abbrev=8"];
const commit = (await run("git", describe, { cwd: root })).trim();
const outcomes = new Map<RowName, Outcome>();
const workloads = [...Map.groupBy(only as RowName[], (name) => rows[name].workload)];
await buildAgent();
const ready = await prepareAll();
for (const [at, { workload, wanted, programs }] of ready.entries()) {
  const left = ready.slice(at).reduce((seconds, { workload }) => seconds + secondsOf(workload), 0);
  printProgress(`${workload}, ${at + 1} of ${ready.length} workloads; about ${minutesText(left)} left`);
  await measureRows(workload, wanted, programs).catch((error) =>
    fail(wanted, error instanceof Error ? error.message : String(error)),
  );
}
if (!quick) await writeGeneratedFiles();
console.log(`\n${summaryText(only as RowName[], outcomes)}`);
const isFailed = [...outcomes.values()].some((outcome) => "failed" in outcome);
// A run that was given up on may have left a timer.
process.exit(isFailed ? 1 : 0);

function readArguments() {
  try {
    return parseArgs({
      options: {
        only: { type: "string", multiple: true, default: names },
        runs: { type: "string" },
        quick: { type: "boolean", default: false },
        cached: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${usage}`);
    process.exit(2);
  }
}

/** The agent runs as on a node: as its bundle. */
async function buildAgent(): Promise<void> {
  printProgress("building the agent");
  await run(process.execPath, ["scripts/build.ts"], { cwd: root });
}

/** Returns the workloads that can be measured. Nothing is built beside a measurement. */
async function prepareAll() {
  const ready: { workload: Workload; wanted: readonly RowName[]; programs: Programs }[] = [];
  for (const [workload, wanted] of workloads) {
    const programs = await prepare(wanted[0]!, workload, cached).catch((error) => ({
      missing: error instanceof Error ? error.message : String(error),
    }));
    if (!("missing" in programs)) ready.push({ workload, wanted, programs });
    else if (cached) skip(wanted, programs.missing);
    else fail(wanted, programs.missing);
  }
  return ready;
}

function skip(wanted: readonly RowName[], reason: string): void {
  printProgress(`SKIPPED ${wanted.join(", ")}: ${reason}`);
  for (const name of wanted) outcomes.set(name, { skipped: reason });
}

function fail(wanted: readonly RowName[], reason: string): void {
  printProgress(`FAILED ${wanted.join(", ")}: ${reason}`);
  for (const name of wanted) outcomes.set(name, { failed: reason });
}

async function measureRows(
  workload: Workload,
  wanted: readonly RowName[],
  programs: Programs,
): Promise<void> {
  const { pairs, load } = await measureWorkload(workload, wanted, { programs, runs, quick });
  const measured = {
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: `${cpus().length} x ${cpus()[0]?.model.trim()}`,
    versions: `Node ${process.version.slice(1)}${programs.version}`,
    load,
  };
  for (const name of wanted) {
    const command = `npm run bench:peers -- --only ${name} --runs ${runs}`;
    const result: Result = { measured: { ...measured, command }, pairs: pairs.get(name)! };
    outcomes.set(name, { summary: summaryOf(result.pairs) });
    if (!quick) await writeResult(name, result);
  }
}

async function writeResult(name: RowName, result: Result): Promise<void> {
  await mkdir(join(root, "bench/results"), { recursive: true });
  await writeFile(join(root, `bench/results/${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
}

function secondsOf(workload: Workload): number {
  return measurements[workload].seconds * runs;
}

function minutesText(seconds: number): string {
  return `${Math.ceil(seconds / 60)} min`;
}

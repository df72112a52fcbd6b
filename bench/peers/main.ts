// Measures the agent beside Go programs in turns: npm run bench:peers -- --help
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { writeGeneratedFiles } from "../../scripts/generated-files.ts";
import { printProgress, root, run } from "../../scripts/programs.ts";
import { buildGo, requiredVersion } from "../../test/e2e/prepare/go-build.ts";
import type { Part } from "../../test/e2e/support/parts.ts";
import { withTimeLimit } from "../time-limit.ts";
import type { Figures, Side } from "./measure.ts";
import { measurements } from "./measurements.ts";
import { type Pair, type Result, summaryOf } from "./results.ts";
import { type Peer, type RowName, rows, type Workload } from "./rows.ts";

const MOST_MINUTES = 5;
const names = Object.keys(rows) as RowName[];
const usage = `usage: npm run bench:peers -- [--only ROW]... [--runs N] [--quick] [--cached]

Builds the agent, and Go programs that import upstream packages (once; Go is needed), and runs them in turns under the
same workload. Rows of one workload are measured by one run. Writes bench/results/ROW.json, docs/performance.md and its picture.

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
await buildAgent();
const workloads = Map.groupBy(only as RowName[], (name) => rows[name].workload);
for (const [workload, wanted] of workloads) await measureWorkload(workload, wanted);
if (!quick) await writeGeneratedFiles();

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

async function measureWorkload(workload: Workload, wanted: readonly RowName[]): Promise<void> {
  const { peer: program, parts = [] } = rows[wanted[0]!];
  const peer = await buildPeer(program);
  if ("missing" in peer) {
    if (!cached) throw new Error(`the Go program of ${workload} cannot be built: ${peer.missing}`);
    return printProgress(`SKIPPED ${wanted.join(", ")}: the Go program is missing: ${peer.missing}`);
  }
  if (parts.length > 0) await run(process.execPath, ["test/e2e/prepare.ts", ...parts], { cwd: root });
  const [load = 0] = loadavg();
  const measure = (side: Side) =>
    withTimeLimit(`${workload} of the ${side}`, MOST_MINUTES, () =>
      measurements[workload]({ side, peer: peer.path, quick }),
    );
  const pairs: { agent: Figures; peer: Figures }[] = [];
  for (let at = 1; at <= runs; at++) {
    const pair = { agent: await measure("agent"), peer: await measure("peer") };
    pairs.push(pair);
    for (const name of wanted) {
      const [own, other] = [rounded(pair.agent[name]!), rounded(pair.peer[name]!)];
      printProgress(`${name}, pair ${at} of ${runs}: ${own} and ${other} ${rows[name].unit}`);
    }
  }
  const measured = {
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: `${cpus().length} x ${cpus()[0]?.model.trim()}`,
    versions: `Node ${process.version.slice(1)}, ${program.module} ${peer.version}`,
    load: rounded(load),
  };
  for (const name of wanted)
    await writeResult(
      name,
      measured,
      pairs.map((pair) => ({
        agent: rounded(pair.agent[name]!),
        peer: rounded(pair.peer[name]!),
      })),
    );
}

async function writeResult(
  name: RowName,
  measured: Omit<Result["measured"], "command">,
  pairs: readonly Pair[],
): Promise<void> {
  const { ratio, min, max } = summaryOf(pairs);
  printProgress(`${name}: ratio ${ratio.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)})`);
  if (quick) return;
  const command = `npm run bench:peers -- --only ${name} --runs ${runs}`;
  await mkdir(join(root, "bench/results"), { recursive: true });
  await writeFile(
    join(root, `bench/results/${name}.json`),
    `${JSON.stringify({ measured: { ...measured, command }, pairs }, null, 2)}\n`,
  );
}

function buildPeer({ directory, program = ".", module }: Peer): Promise<Part> {
  const path = join(import.meta.dirname, directory);
  const version = requiredVersion(path, module);
  const name = `peer-${directory}${program === "." ? "" : `-${basename(program)}`}`;
  return buildGo({ name, module: path, package: program, version, onlyCached: cached });
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

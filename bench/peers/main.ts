// Measures the agent beside Go programs in turns: npm run bench:peers -- --help
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { writeGeneratedFiles } from "../../scripts/generated-files.ts";
import { printProgress, root, run } from "../../scripts/programs.ts";
import { buildGo, requiredVersion } from "../../test/e2e/prepare/go-build.ts";
import { withTimeLimit } from "../time-limit.ts";
import type { Side } from "./measure.ts";
import { measurements } from "./measurements.ts";
import { type Pair, summaryOf } from "./results.ts";
import { type Row, type RowName, rows } from "./rows.ts";

const MOST_MINUTES = 5;
const names = Object.keys(rows) as RowName[];
const usage = `usage: npm run bench:peers -- [--only ROW]... [--runs N] [--quick]

Builds Go programs that import upstream packages (once; Go is needed), and runs them and the agent in turns under the
same workload. Writes bench/results/ROW.json, docs/performance.md and its picture.

  --only ROW   measures only this row; can be repeated. Rows: ${names.join(", ")}
  --runs N     pairs of each row; 5
  --quick      two short pairs of each row, which are printed and not written`;

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: names },
    runs: { type: "string" },
    quick: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const { only, quick } = values;
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
for (const name of only as RowName[]) await measureRow(name);
if (!quick) await writeGeneratedFiles();

async function measureRow(name: RowName): Promise<void> {
  const peer = await buildPeer(rows[name]);
  const [load = 0] = loadavg();
  const pairs: Pair[] = [];
  const measure = (side: Side) =>
    withTimeLimit(`${name} of the ${side}`, MOST_MINUTES, () =>
      measurements[name]({ side, peer: peer.path, quick }),
    );
  for (let at = 1; at <= runs; at++) {
    const pair = { agent: rounded(await measure("agent")), peer: rounded(await measure("peer")) };
    printProgress(`${name}, pair ${at} of ${runs}: ${pair.agent} and ${pair.peer} ${rows[name].unit}`);
    pairs.push(pair);
  }
  const { ratio, min, max } = summaryOf(pairs);
  printProgress(
    `${name}: ratio ${ratio.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)}), goal ${rows[name].goal}`,
  );
  if (quick) return;
  const measured = {
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: `${cpus().length} x ${cpus()[0]?.model.trim()}`,
    versions: `Node ${process.version.slice(1)}, ${rows[name].module} ${peer.version}`,
    load: rounded(load),
    command: `npm run bench:peers -- --only ${name} --runs ${runs}`,
  };
  await mkdir(join(root, "bench/results"), { recursive: true });
  await writeFile(
    join(root, `bench/results/${name}.json`),
    `${JSON.stringify({ measured, pairs }, null, 2)}\n`,
  );
}

async function buildPeer({ peer, module }: Row): Promise<{ path: string; version: string }> {
  const directory = join(import.meta.dirname, peer);
  const version = requiredVersion(directory, module);
  const built = await buildGo({ name: `peer-${peer}`, module: directory, package: ".", version });
  if ("missing" in built) throw new Error(`the peer ${peer} cannot be built: ${built.missing}`);
  return built;
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

// Compares this repository's benchmarks at another commit with those at HEAD: npm run bench:compare -- REF [SUITE...]
// [--quick] [--pairs N]. Both run in turns, so that other work on the machine slows both.
import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { printProgress, root, run } from "../scripts/programs.ts";
import type { Figure } from "./figures.ts";

/** Those that need nothing besides Node. */
const usual = ["devices", "footprint", "lifecycle", "eviction"];
// Above the limits of `time-limit.ts`, which older commits do not have.
const MOST_MINUTES = { quick: 20, full: 60 };

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, pairs: { type: "string", default: "2" } },
});
const [ref, ...suites] = positionals;
const pairs = Number(values.pairs);
if (ref === undefined || !Number.isInteger(pairs) || pairs < 1) {
  console.error("usage: npm run bench:compare -- REF [SUITE...] [--quick] [--pairs N]");
  process.exit(2);
}

// Not below node_modules, where Node runs no TypeScript.
const directory = await mkdtemp(join(tmpdir(), "nkcompare-"));
const [before, after] = [join(directory, "before"), join(directory, "after")];
try {
  await prepare(before, ref);
  await prepare(after, "HEAD");
  const names = suites.length > 0 ? suites : usual;
  for (const suite of names) await compare(suite);
} finally {
  for (const worktree of [before, after])
    await run("git", ["worktree", "remove", "--force", worktree], { cwd: root }).catch(() => {});
  await rm(directory, { recursive: true, force: true });
}

/** Checks out a commit and builds it, with the packages that are installed here. */
async function prepare(worktree: string, commit: string): Promise<void> {
  printProgress(`building ${commit}`);
  await run("git", ["worktree", "add", "--quiet", "--detach", worktree, commit], { cwd: root });
  const modules = join(root, "node_modules");
  // Hard links where they are possible: the packages are not changed.
  await run("cp", ["-al", modules, worktree]).catch(() => run("cp", ["-a", modules, worktree]));
  const own = join(worktree, "node_modules/@nodekeeper");
  await rm(own, { recursive: true });
  await run("mkdir", [own]);
  for (const name of await readdir(join(worktree, "packages"))) {
    const manifest = await readFile(join(worktree, "packages", name, "package.json"), "utf8");
    const [, scoped] = /"name": "@nodekeeper\/([^"]+)"/.exec(manifest) ?? [];
    if (scoped !== undefined) await symlink(join("../../packages", name), join(own, scoped));
  }
  await run("npm", ["run", "-s", "build"], { cwd: worktree });
}

async function compare(suite: string): Promise<void> {
  const measured: { before: Figure[]; after: Figure[] }[] = [];
  for (let pair = 1; pair <= pairs; pair++) {
    printProgress(`${suite}, pair ${pair} of ${pairs}`);
    const figures = { before: await measure(before, suite), after: await measure(after, suite) };
    if (figures.before && figures.after) measured.push({ before: figures.before, after: figures.after });
  }
  print(suite, measured);
}

/** Returns undefined if the benchmark failed or took too long, which is printed. */
function measure(worktree: string, suite: string): Promise<Figure[] | undefined> {
  const args = ["bench/main.ts", suite, "-o", "json", ...(values.quick ? ["--quick"] : [])];
  const minutes = values.quick ? MOST_MINUTES.quick : MOST_MINUTES.full;
  return new Promise((resolve) => {
    // A group of its own, so that the processes that it started end with it.
    const child = spawn(process.execPath, args, {
      cwd: worktree,
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const fail = (why: string) => {
      console.error(`${suite} in ${worktree} ${why}: this pair does not count`);
      resolve(undefined);
    };
    const timer = setTimeout(() => {
      fail(`did not finish within ${minutes} minutes`);
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    }, minutes * 60_000);
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk;
    });
    child.once("error", (error) => fail(error.message));
    child.once("close", (code) => {
      clearTimeout(timer);
      if (code === 0) resolve(JSON.parse(output) as Figure[]);
      else fail(`failed with code ${code}`);
    });
  });
}

/** Prints a row per figure: medians, and the median, least and greatest ratio of all pairs. */
function print(suite: string, measured: readonly { before: Figure[]; after: Figure[] }[]): void {
  console.log(`\n| ${suite} | before | after | ratio | min | max |\n|---|---|---|---|---|---|`);
  const all = measured.flatMap((pair) => [...pair.after, ...pair.before]);
  const units = new Map(all.map(({ name, unit }) => [name, unit]));
  for (const [name, unit] of units) {
    const of = (figures: readonly Figure[]) => figures.find((figure) => figure.name === name)?.value;
    const befores = measured.flatMap((pair) => of(pair.before) ?? []);
    const afters = measured.flatMap((pair) => of(pair.after) ?? []);
    const ratios = measured.flatMap((pair) => {
      const [one, other] = [of(pair.before), of(pair.after)];
      return one && other !== undefined ? [other / one] : [];
    });
    const columns = [median(befores), median(afters), median(ratios)].map(text);
    const ends = ratios.length > 0 ? [Math.min(...ratios), Math.max(...ratios)].map(text) : ["", ""];
    console.log(`| ${name}${unit && `, ${unit}`} | ${[...columns, ...ends].join(" | ")} |`);
  }
}

/** Returns undefined if there are no values. */
function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? undefined : (low + high) / 2;
}

function text(value: number | undefined): string {
  return value?.toFixed(value < 10 ? 2 : 1) ?? "";
}

// Lines of code by module, without blank lines, comments and generated files: `npm run count`, or
// `npm run count -- COMMIT` for the same with the lines at a commit beside them.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const directories = ["packages", "scripts"];
const CODE = /\.(ts|tsx)$/;
const TEST = /\.test\.tsx?$|\/testing\/|^packages\/testing\//;
const GENERATED = /\/gen\//;

interface Lines {
  code: number;
  tests: number;
}

const git = (...args: string[]) =>
  execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 256 * 1024 * 1024 });
const isCounted = (path: string) => CODE.test(path) && !GENERATED.test(path);

/** A module of the agent or of the core, else the package or directory. */
function moduleOf(path: string): string {
  const parts = path.split("/");
  if (parts[0] !== "packages") return parts[0]!;
  const isModule = (parts[1] === "agent" || parts[1] === "core") && parts.length > 4;
  return parts.slice(0, isModule ? 4 : 2).join("/");
}

function linesOf(text: string): number {
  const withoutBlocks = text.replace(/^[ \t]*\/\*[\s\S]*?\*\/[ \t]*$/gm, "");
  return withoutBlocks.split("\n").filter((line) => /\S/.test(line) && !/^\s*\/\//.test(line)).length;
}

function count(paths: string[], read: (path: string) => string): Map<string, Lines> {
  const counted = new Map<string, Lines>();
  for (const path of paths.filter(isCounted)) {
    const module = moduleOf(path);
    const lines = counted.get(module) ?? { code: 0, tests: 0 };
    counted.set(module, lines);
    lines[TEST.test(path) ? "tests" : "code"] += linesOf(read(path));
  }
  return counted;
}

function countNow(): Map<string, Lines> {
  const paths = git("ls-files", "--cached", "--others", "--exclude-standard", "--", ...directories).split(
    "\n",
  );
  const existing = paths.filter((path) => path && existsSync(join(root, path)));
  return count(existing, (path) => readFileSync(join(root, path), "utf8"));
}

function countAt(commit: string): Map<string, Lines> {
  const paths = git("ls-tree", "-r", "--name-only", commit, "--", ...directories).split("\n");
  return count(paths, (path) => git("show", `${commit}:${path}`));
}

const [commit] = process.argv.slice(2);
const columns = commit === undefined ? [countNow()] : [countAt(commit), countNow()];
const modules = [...new Set(columns.flatMap((each) => [...each.keys()]))].sort();
const cell = (value: number | string) => String(value).padStart(8);
const row = (name: string, of: (lines: Map<string, Lines>) => Lines) => {
  const values = columns.map(of);
  const difference = values.length < 2 ? "" : cell(values[1]!.code - values[0]!.code);
  console.log(
    name.padEnd(34) + values.map((each) => cell(each.code) + cell(each.tests)).join("") + difference,
  );
};
const none: Lines = { code: 0, tests: 0 };

console.log("".padEnd(34) + columns.map(() => cell("code") + cell("tests")).join(""));
for (const module of modules) row(module, (column) => column.get(module) ?? none);
row("all", (column) =>
  [...column.values()].reduce(
    (sum, { code, tests }) => ({ code: sum.code + code, tests: sum.tests + tests }),
    none,
  ),
);

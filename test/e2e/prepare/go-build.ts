import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { cacheFolder, type Part } from "../support/parts.ts";
import { findProgram, run, say } from "./run.ts";

export interface GoProgram {
  /** The file's name in the cache. */
  name: string;
  /** The folder with go.mod. */
  module: string;
  /** The package in it, such as "./kubectl". */
  package: string;
  /** For the name in the cache and for messages. */
  version: string;
  /** `-X` values of the linker. */
  stamps?: Readonly<Record<string, string>>;
}

const NO_GO = "Go is not installed";

/** Builds a program once for each state of its module and each Go; the result stays in the cache. */
export async function buildGo(program: GoProgram): Promise<Part> {
  const { name, module, version } = program;
  if (!findProgram("go")) return { missing: NO_GO };
  const goVersion = (await run("go", ["env", "GOVERSION"], { cwd: module })).trim();
  const folder = join(cacheFolder, `${name}-${version}`);
  const path = join(folder, `${digestOf(program, goVersion)}`, name);
  const part = { path, version: `${version}, ${goVersion}` };
  if (existsSync(path)) return part;
  say(`building ${name} ${version} with ${goVersion} (once; minutes where Go's own cache is empty)`);
  const startedAt = process.uptime();
  const unfinished = `${path}.${process.pid}`;
  mkdirSync(join(path, ".."), { recursive: true });
  try {
    await build(program, unfinished);
    renameSync(unfinished, path);
  } catch (error) {
    return { missing: `go build failed: ${error instanceof Error ? error.message : error}` };
  } finally {
    rmSync(unfinished, { force: true });
  }
  say(`built ${name} in ${Math.round(process.uptime() - startedAt)} s`);
  return part;
}

/** The folder of a module in Go's module cache, downloaded where it is missing. */
export async function downloadModule(module: string, version: string): Promise<Part> {
  if (!findProgram("go")) return { missing: NO_GO };
  try {
    const answer = JSON.parse(
      await run("go", ["mod", "download", "-json", `${module}@${version}`], {
        cwd: "/",
        env: { GOFLAGS: "" },
      }),
    );
    return { path: answer.Dir, version };
  } catch (error) {
    return {
      missing: `${module} ${version} can't be downloaded: ${error instanceof Error ? error.message : error}`,
    };
  }
}

async function build(program: GoProgram, output: string): Promise<void> {
  const stamps = Object.entries(program.stamps ?? {}).map(([symbol, value]) => ` -X ${symbol}=${value}`);
  const args = ["build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", `-s -w${stamps.join("")}`];
  await run("nice", ["-n", "19", "go", ...args, "-o", output, program.package], {
    cwd: program.module,
    env: { CGO_ENABLED: "0", GOFLAGS: "", GOWORK: "off" },
    progress: (lines) => `  still building ${program.name}: ${lines} packages and downloads so far`,
  });
}

function digestOf(program: GoProgram, goVersion: string): string {
  const hash = createHash("sha256").update(JSON.stringify([goVersion, program.stamps, program.package]));
  const sources = readdirSync(program.module, { recursive: true, encoding: "utf8" })
    .filter((name) => /(\.go|go\.mod|go\.sum)$/.test(name))
    .sort();
  for (const name of sources) {
    const path = join(program.module, name);
    hash.update(`${relative(program.module, path)}\n`).update(readFileSync(path));
  }
  return hash.digest("hex").slice(0, 12);
}

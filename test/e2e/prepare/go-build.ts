import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findProgram, printProgress, run } from "../../../scripts/programs.ts";
import { cacheDirectory, type Part } from "../support/parts.ts";

interface GoBuild {
  /** The directory with go.mod. */
  module: string;
  /** Modules of this repository that it replaces others with. */
  beside?: readonly string[];
  /** For the name in the cache and for messages. */
  version: string;
  /** `-X` values of the linker. */
  stamps?: Readonly<Record<string, string>>;
  /** Build tags. */
  tags?: readonly string[];
  /** In place of the usual variables. */
  env?: Readonly<Record<string, string>>;
  /** Builds nothing: what is not in the cache is missing. */
  onlyCached?: boolean;
}

export interface GoProgram extends GoBuild {
  /** The file's name in the cache. */
  name: string;
  /** The package in it, such as "./kubectl". */
  package: string;
}

/** Programs of one module, each in the directory of its name. */
export interface GoPrograms<Name extends string> extends GoBuild {
  /** The directory's name in the cache. */
  name: string;
  programs: readonly Name[];
  /** The path of their packages, without their names. Default: that of the module. */
  parent?: string;
}

const NO_GO = "Go is not installed";

/** Builds a program once for each state of its module and each Go; the result stays in the cache. */
export async function buildGo(program: GoProgram): Promise<Part> {
  const { name } = program;
  const built = await buildOnce({ ...program, packages: [program.package], files: [name] });
  return "missing" in built ? built : { ...built, path: join(built.path, name) };
}

/** As `buildGo`, for programs that share most of their packages: one call of Go compiles those once, without a wait between. */
export async function buildGoPrograms<Name extends string>(
  group: GoPrograms<Name>,
): Promise<Record<Name, Part>> {
  const { programs, parent = "." } = group;
  const packages = programs.map((name) => `${parent}/${name}`);
  const built = await buildOnce({ ...group, packages, files: programs });
  const parts = programs.map((name) => [
    name,
    "missing" in built ? built : { ...built, path: join(built.path, name) },
  ]);
  return Object.fromEntries(parts);
}

interface OneBuild extends GoBuild {
  name: string;
  packages: readonly string[];
  /** What the build leaves in its directory. */
  files: readonly string[];
}

// The part is the directory that has the files.
async function buildOnce(wanted: OneBuild): Promise<Part> {
  const { name, module, version, files, onlyCached = false } = wanted;
  if (!findProgram("go")) return { missing: NO_GO };
  const goVersion = (await run("go", ["env", "GOVERSION"], { cwd: module })).trim();
  const path = join(cacheDirectory, `${name}-${version}`, digestOf(wanted, goVersion));
  const part = { path, version: `${version}, ${goVersion}` };
  if (files.every((file) => existsSync(join(path, file)))) return part;
  if (onlyCached) return { missing: "it has not been built on this machine yet" };
  printProgress(
    `building ${name} ${version} with ${goVersion} (once; minutes where Go's own cache is empty)`,
  );
  const startedAt = process.uptime();
  const unfinished = `${path}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    await build(wanted, unfinished);
    rmSync(path, { recursive: true, force: true });
    renameSync(unfinished, path);
  } catch (error) {
    return { missing: `go build failed: ${error instanceof Error ? error.message : error}` };
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  printProgress(`built ${name} in ${Math.round(process.uptime() - startedAt)} s`);
  return part;
}

/** The directory of a module in Go's module cache, downloaded where it is missing. */
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

async function build(
  { name, module, stamps = {}, tags = [], env = {}, packages, files }: OneBuild,
  directory: string,
): Promise<void> {
  const symbols = Object.entries(stamps).map(([symbol, value]) => ` -X ${symbol}=${value}`);
  const flags = [
    `-ldflags=-s -w${symbols.join("")}`,
    ...(tags.length > 0 ? [`-tags=${tags.join(",")}`] : []),
  ];
  const args = ["build", "-v", "-trimpath", "-buildvcs=false", ...flags];
  // Of several packages Go names the files itself; a single one may have another name than its directory.
  const output = files.length === 1 ? join(directory, files[0]!) : `${directory}/`;
  await run("nice", ["-n", "19", "go", ...args, "-o", output, ...packages], {
    cwd: module,
    env: { CGO_ENABLED: "0", GOFLAGS: "", GOWORK: "off", ...env },
    progress: (lines) => `  still building ${name}: ${lines} packages and downloads so far`,
  });
}

function digestOf({ module, beside = [], stamps, tags, packages }: OneBuild, goVersion: string): string {
  const hash = createHash("sha256").update(JSON.stringify([goVersion, stamps, packages, ...(tags ?? [])]));
  for (const directory of [module, ...beside]) {
    const sources = readdirSync(directory, { recursive: true, encoding: "utf8" })
      .filter((name) => /(\.go|\.s|go\.mod|go\.sum)$/.test(name) && !name.endsWith("_test.go"))
      .sort();
    for (const name of sources) hash.update(`${name}\n`).update(readFileSync(join(directory, name)));
  }
  return hash.digest("hex").slice(0, 12);
}

/** The version that a go.mod requires, so that it is written down in one place. */
export function requiredVersion(directory: string, module: string): string {
  const text = readFileSync(join(directory, "go.mod"), "utf8");
  const [, version] =
    new RegExp(`^(?:require)?\\s*${module.replaceAll(".", "\\.")} (v\\S+)`, "m").exec(text) ?? [];
  if (!version) throw new Error(`${directory}/go.mod does not require ${module}`);
  return version;
}

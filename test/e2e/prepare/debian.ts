import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { downloadPackages } from "../../../scripts/debian-packages.ts";
import { findProgram, printProgress, run } from "../../../scripts/programs.ts";
import { cacheDirectory, type Part } from "../support/parts.ts";

/** A program of the machine, else of a Debian package as `fromPackage` gives it. */
export async function fromDebian(packageName: string, program: string, file: string): Promise<Part> {
  const installed = findProgram(program);
  if (installed) return { path: installed, version: "of this machine" };
  return await fromPackage({ packageName, file });
}

export interface PackagedFile {
  packageName: string;
  /** Where the package has it, such as "usr/bin/etcd". */
  file: string;
  /** Another release of Debian than the machine's, such as "trixie". */
  release?: string;
  /** Packages with libraries that it needs and not every machine has. The part is a script that runs it with them. */
  libraries?: readonly string[];
}

/**
 * A file of a Debian package that is unpacked into the cache: installing it would start a service of the machine's, and
 * would need root.
 */
export async function fromPackage(wanted: PackagedFile): Promise<Part> {
  const { packageName, file, release, libraries } = wanted;
  const name = release ? `${packageName}-${release}` : packageName;
  const directory = join(cacheDirectory, "debian", name);
  const path = join(directory, libraries ? `with-libraries/${basename(file)}` : file);
  const version = `Debian ${release ? `${release} ` : ""}${packageName}`;
  if (existsSync(path)) return { path, version };
  if (!findProgram("apt-get")) return { missing: `there is no apt-get to fetch ${version}` };
  printProgress(`fetching ${version}`);
  try {
    await unpack(wanted, directory);
  } catch (error) {
    return { missing: `${version} can't be fetched: ${firstLine(error)}` };
  }
  return existsSync(path) ? { path, version } : { missing: `${version} has no ${file}` };
}

async function unpack(
  { packageName, file, release, libraries = [] }: PackagedFile,
  directory: string,
): Promise<void> {
  mkdirSync(join(cacheDirectory, "debian"), { recursive: true });
  const work = mkdtempSync(join(cacheDirectory, "debian", ".unpack-"));
  try {
    const wanted = [packageName, ...libraries].map((name) => ({ name, ...(release ? { release } : {}) }));
    for (const archive of await downloadPackages(wanted, work))
      await run("dpkg-deb", ["-x", archive, join(work, "root")]);
    if (libraries.length > 0) writeScript(join(work, "root"), file);
    rmSync(directory, { recursive: true, force: true });
    renameSync(join(work, "root"), directory);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function writeScript(root: string, file: string): void {
  mkdirSync(join(root, "with-libraries"));
  const script = `#!/bin/sh
root=$(realpath "$(dirname "$0")/..")
LD_LIBRARY_PATH=$(echo "$root"/usr/lib/*-linux-gnu) exec "$root/${file}" "$@"
`;
  writeFileSync(join(root, "with-libraries", basename(file)), script, { mode: 0o755 });
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
}

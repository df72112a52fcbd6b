import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder, type Part } from "../support/parts.ts";
import { findProgram, run, say } from "./run.ts";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

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
}

/**
 * A file of a Debian package that is unpacked into the cache: installing it would start a service of the machine's, and
 * would need root.
 */
export async function fromPackage({ packageName, file, release }: PackagedFile): Promise<Part> {
  const name = release ? `${packageName}-${release}` : packageName;
  const folder = join(cacheFolder, "debian", name);
  const path = join(folder, file);
  const version = `Debian ${release ? `${release} ` : ""}${packageName}`;
  if (existsSync(path)) return { path, version };
  if (!findProgram("apt-get")) return { missing: `there is no apt-get to fetch ${version}` };
  say(`fetching ${version}`);
  try {
    await unpack(packageName, folder, release);
  } catch (error) {
    return { missing: `${version} can't be fetched: ${firstLine(error)}` };
  }
  return existsSync(path) ? { path, version } : { missing: `${version} has no ${file}` };
}

async function unpack(packageName: string, folder: string, release: string | undefined): Promise<void> {
  mkdirSync(join(cacheFolder, "debian"), { recursive: true });
  const work = mkdtempSync(join(cacheFolder, "debian", ".unpack-"));
  try {
    if (release) await downloadOf(release, packageName, work);
    else await download(packageName, work);
    const archive = readdirSync(work).find((name) => name.endsWith(".deb"));
    if (!archive) throw new Error("nothing was downloaded");
    await run("dpkg-deb", ["-x", join(work, archive), join(work, "root")]);
    rmSync(folder, { recursive: true, force: true });
    renameSync(join(work, "root"), folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function download(packageName: string, cwd: string): Promise<void> {
  try {
    await run("apt-get", ["download", packageName], { cwd });
  } catch (error) {
    if (process.getuid?.() !== 0)
      throw new Error("the package lists are old or empty, and only root may renew them", { cause: error });
    say("renewing the package lists");
    await run("apt-get", ["update"]);
    await run("apt-get", ["download", packageName], { cwd });
  }
}

/** Downloads from another release by lists of its own, so that the machine's own are not touched. */
async function downloadOf(release: string, packageName: string, cwd: string): Promise<void> {
  const format = "$(REPO_URI) $(COMPONENT)";
  const targets = await run("apt-get", ["indextargets", "--format", format, "Created-By: Packages"]);
  const [uri] = /^\S+\/debian\/?(?= main$)/m.exec(targets) ?? [];
  if (!uri) throw new Error("the machine's package sources name no Debian");
  const sources = join(cwd, "sources.list");
  const lists = join(cwd, "lists");
  mkdirSync(join(lists, "partial"), { recursive: true });
  writeFileSync(sources, `deb [signed-by=${KEYRING}] ${uri} ${release} main\n`);
  const settings = [
    `Dir::Etc::sourcelist=${sources}`,
    "Dir::Etc::sourceparts=/dev/null",
    `Dir::State::lists=${lists}`,
    "Dir::Cache::pkgcache=",
    "Dir::Cache::srcpkgcache=",
  ].flatMap((setting) => ["-o", setting]);
  await run("apt-get", [...settings, "update"], { cwd });
  await run("apt-get", [...settings, "download", packageName], { cwd });
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
}

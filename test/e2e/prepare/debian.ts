import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheFolder, type Part } from "../support/parts.ts";
import { findProgram, run, say } from "./run.ts";

/**
 * A program of the machine, else of a Debian package unpacked into the cache: installing it would start a service of
 * the machine's, and would need root.
 * @param file where the package has the program, such as "usr/bin/etcd"
 */
export async function fromDebian(packageName: string, program: string, file: string): Promise<Part> {
  const installed = findProgram(program);
  if (installed) return { path: installed, version: "of this machine" };
  const folder = join(cacheFolder, "debian", packageName);
  const path = join(folder, file);
  if (existsSync(path)) return { path, version: `Debian ${packageName}, unpacked before` };
  if (!findProgram("apt-get"))
    return { missing: `${program} is not installed, and there is no apt-get to fetch it` };
  say(`fetching Debian's ${packageName}`);
  try {
    await unpack(packageName, folder);
  } catch (error) {
    return { missing: `Debian's ${packageName} can't be fetched: ${firstLine(error)}` };
  }
  return existsSync(path)
    ? { path, version: `Debian ${packageName}` }
    : { missing: `Debian's ${packageName} has no ${file}` };
}

async function unpack(packageName: string, folder: string): Promise<void> {
  mkdirSync(join(cacheFolder, "debian"), { recursive: true });
  const work = mkdtempSync(join(cacheFolder, "debian", ".unpack-"));
  try {
    await download(packageName, work);
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

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
}

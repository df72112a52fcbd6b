import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { printProgress, run, withTemporaryDirectory } from "./programs.ts";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

export interface DebianPackage {
  name: string;
  /** Another release of Debian than the machine's, such as "trixie". */
  release?: string;
  /** Another architecture than the machine's, in Debian's words, such as "arm64". Only together with a release. */
  architecture?: string;
}

/**
 * Downloads packages into a directory. Returns the paths of all .deb files in it, sorted. Requires root only to refresh
 * the machine's package lists. Other releases use temporary lists, so the machine's are not changed.
 * @throws if a release is given and the machine's sources name no Debian, if the package lists are outdated and the
 * process is not root, or if a package can't be downloaded
 */
export async function downloadPackages(
  packages: readonly DebianPackage[],
  directory: string,
): Promise<string[]> {
  const groups = Map.groupBy(packages, ({ release, architecture }) => `${release} ${architecture}`);
  for (const [first, ...more] of groups.values()) {
    const names = [first!, ...more].map(({ name }) => name);
    if (first!.release) await downloadOf(first!.release, first!.architecture, names, directory);
    else await download(names, directory);
  }
  const files = readdirSync(directory).filter((name) => name.endsWith(".deb"));
  if (files.length < packages.length) throw new Error(`of ${packages.length} packages ${files.length} came`);
  return files.sort().map((name) => join(directory, name));
}

async function download(names: readonly string[], cwd: string): Promise<void> {
  try {
    await run("apt-get", ["download", ...names], { cwd });
  } catch (error) {
    if (process.getuid?.() !== 0)
      throw new Error("the package lists are old or empty, and only root may renew them", { cause: error });
    printProgress("renewing the package lists");
    await run("apt-get", ["update"]);
    await run("apt-get", ["download", ...names], { cwd });
  }
}

async function downloadOf(
  release: string,
  architecture: string | undefined,
  names: readonly string[],
  cwd: string,
): Promise<void> {
  const format = "$(REPO_URI) $(COMPONENT)";
  const targets = await run("apt-get", ["indextargets", "--format", format, "Created-By: Packages"]);
  const [uri] = /^\S+\/debian\/?(?= main$)/m.exec(targets) ?? [];
  if (!uri) throw new Error("the machine's package sources name no Debian");
  await withTemporaryDirectory(async (work) => {
    const sources = join(work, "sources.list");
    const lists = join(work, "lists");
    mkdirSync(join(lists, "partial"), { recursive: true });
    writeFileSync(sources, `deb [signed-by=${KEYRING}] ${uri} ${release} main\n`);
    const settings = [
      `Dir::Etc::sourcelist=${sources}`,
      "Dir::Etc::sourceparts=/dev/null",
      `Dir::State::lists=${lists}`,
      "Dir::Cache::pkgcache=",
      "Dir::Cache::srcpkgcache=",
      ...(architecture ? [`APT::Architecture=${architecture}`, `APT::Architectures=${architecture}`] : []),
    ].flatMap((setting) => ["-o", setting]);
    await run("apt-get", [...settings, "update"], { cwd });
    await run("apt-get", [...settings, "download", ...names], { cwd });
  });
}

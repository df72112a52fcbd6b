import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";

const MOUNT = "/sys/fs/cgroup";

/** The mounted hierarchies by the names of their directories: some for the controllers of cgroup v1, or "" for v2 alone. */
export function cgroupHierarchies(): string[] {
  if (existsSync(join(MOUNT, "cgroup.controllers"))) return [""];
  // A directory in which nothing is mounted is another program's business.
  return readdirSync(MOUNT, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && existsSync(join(MOUNT, entry.name, "cgroup.procs")) ? [entry.name] : [],
  );
}

/** Makes a cgroup such as "/e2e-1" in every hierarchy, with all that its parent may use. */
export function makeCgroup(path: string): void {
  for (const hierarchy of cgroupHierarchies()) {
    const root = join(MOUNT, hierarchy);
    const directory = join(root, path);
    mkdirSync(directory, { recursive: true });
    if (hierarchy === "") giveControllers(root);
    // In v1 a cgroup begins without a CPU, and takes no process.
    if (hierarchy !== "cpuset") continue;
    for (const file of ["cpuset.cpus", "cpuset.mems"])
      writeFileSync(join(directory, file), readFileSync(join(root, file)));
  }
}

/** Gives a cgroup of pods as much weight as the kubelet gives its own: a whole CPU's for each of the machine. */
export function weighAsPods(path: string): void {
  const shares = 1024 * availableParallelism();
  for (const hierarchy of cgroupHierarchies()) {
    const directory = join(MOUNT, hierarchy, path);
    if (hierarchy === "")
      writeFileSync(join(directory, "cpu.weight"), `${Math.min(10_000, (shares * 100) / 1024)}`);
    else if (existsSync(join(directory, "cpu.shares")))
      writeFileSync(join(directory, "cpu.shares"), `${shares}`);
  }
}

/** Removes a cgroup and all below it from every hierarchy, killing what runs there; waits until it is removed. */
export async function removeCgroup(path: string): Promise<void> {
  const directories = cgroupHierarchies().map((hierarchy) => join(MOUNT, hierarchy, path));
  await until(`the removal of cgroup ${path}`, () => {
    for (const directory of directories) removeTree(directory);
    return directories.every((directory) => !existsSync(directory));
  });
}

// Its children have the controllers that it says here.
function giveControllers(directory: string): void {
  const controllers = readFileSync(join(directory, "cgroup.controllers"), "utf8")
    .split(/\s+/)
    .filter(Boolean);
  for (const name of controllers) {
    try {
      writeFileSync(join(directory, "cgroup.subtree_control"), `+${name}`);
    } catch {
      // One that the machine uses in another way.
    }
  }
}

// Directories alone: what the kernel shows in them goes with them.
function removeTree(directory: string): void {
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (entry.isDirectory()) removeTree(join(directory, entry.name));
    }
    for (const pid of readFileSync(join(directory, "cgroup.procs"), "utf8").split("\n").filter(Boolean)) {
      process.kill(Number(pid), "SIGKILL");
    }
    rmdirSync(directory);
  } catch {
    // Not there, or a process still ends in it.
  }
}
